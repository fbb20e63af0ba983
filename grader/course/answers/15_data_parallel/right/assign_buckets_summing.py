# exercise: assign_buckets
# diagnosis: none
def assign_buckets(sizes, cap_bytes):
    found = []
    bucket = []
    for i, size in sorted(enumerate(sizes), reverse=True):
        if bucket and sum(sizes[j] for j in bucket) + size > cap_bytes:
            found.append(bucket)
            bucket = []
        bucket = [*bucket, i]
    return [*found, bucket] if bucket else found

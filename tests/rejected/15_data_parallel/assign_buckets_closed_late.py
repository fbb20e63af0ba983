# exercise: assign_buckets
# diagnosis: wrong_shape
# hint: before the cap is passed
def assign_buckets(sizes, cap_bytes):
    buckets, bucket, filled = [], [], 0
    for index in reversed(range(len(sizes))):
        bucket.append(index)
        filled += sizes[index]
        if filled > cap_bytes:
            buckets.append(bucket)
            bucket, filled = [], 0
    return [*buckets, bucket] if bucket else buckets

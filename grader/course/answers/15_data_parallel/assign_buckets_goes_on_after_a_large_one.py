"""One that is larger than the cap stands alone, and here the bucket before it is filled further after
it. Close that bucket first: a bucket's parameters follow each other.
"""
# exercise: assign_buckets
# diagnosis: wrong_value


def assign_buckets(sizes, cap_bytes):
    buckets, bucket, filled = [], [], 0
    for index in reversed(range(len(sizes))):
        if sizes[index] > cap_bytes:
            buckets.append([index])
            continue
        if filled + sizes[index] > cap_bytes:
            buckets.append(bucket)
            bucket, filled = [], 0
        bucket.append(index)
        filled += sizes[index]
    return [*buckets, bucket] if bucket else buckets

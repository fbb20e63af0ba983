"""A bucket is closed before the cap is passed, not after it: the parameter that would pass it
begins the next bucket.
"""
# exercise: assign_buckets
# diagnosis: wrong_shape
# or: WHEN_FULL = True


WHEN_FULL = False


def assign_buckets(sizes, cap_bytes):
    buckets, bucket, filled = [], [], 0
    for index in reversed(range(len(sizes))):
        bucket.append(index)
        filled += sizes[index]
        if filled > cap_bytes or (WHEN_FULL and filled == cap_bytes):
            buckets.append(bucket)
            bucket, filled = [], 0
    return [*buckets, bucket] if bucket else buckets

"""The last bucket is missing: when the loop ends, the bucket that is being filled has to go into the
list as well.
"""
# exercise: assign_buckets
# diagnosis: wrong_shape


def assign_buckets(sizes, cap_bytes):
    buckets, bucket, filled = [], [], 0
    for index in reversed(range(len(sizes))):
        if bucket and filled + sizes[index] > cap_bytes:
            buckets.append(bucket)
            bucket, filled = [], 0
        bucket.append(index)
        filled += sizes[index]
    return buckets

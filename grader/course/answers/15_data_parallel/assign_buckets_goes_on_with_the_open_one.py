"""One that is larger than the cap stands alone, and here the bucket before it is filled further after
it. Close that bucket first: a bucket's parameters follow each other.
"""
# exercise: assign_buckets
# diagnosis: wrong_shape


def assign_buckets(sizes, cap_bytes):
    buckets, filled = [], None
    for index in reversed(range(len(sizes))):
        if sizes[index] > cap_bytes:
            buckets.append([index])
        elif filled is None or filled + sizes[index] > cap_bytes:
            bucket, filled = [index], sizes[index]
            buckets.append(bucket)
        else:
            bucket.append(index)
            filled += sizes[index]
    return buckets

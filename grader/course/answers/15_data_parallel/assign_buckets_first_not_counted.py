"""The first parameter of a new bucket is not counted: the bucket begins with 0 bytes in place of
that parameter's, and takes more than fit."""
# exercise: assign_buckets
# diagnosis: wrong_shape
# or: VERY_FIRST = "is not counted"

VERY_FIRST = "is counted"


def assign_buckets(sizes, cap_bytes):
    buckets, filled = [], 0
    for i in reversed(range(len(sizes))):
        if buckets and filled + sizes[i] <= cap_bytes:
            buckets[-1].append(i)
            filled += sizes[i]
        else:
            filled = 0 if buckets or VERY_FIRST != "is counted" else sizes[i]
            buckets.append([i])
    return buckets

"""You fill the buckets from the first parameter on, and turn them round afterwards. Which parameters
share a bucket depends on where you begin: fill them from the last parameter on.
"""
# exercise: assign_buckets
# diagnosis: wrong_shape


def assign_buckets(sizes, cap_bytes):
    buckets, filled = [], 0
    for index in range(len(sizes)):
        if not buckets or filled + sizes[index] > cap_bytes:
            buckets.append([])
            filled = 0
        buckets[-1].append(index)
        filled += sizes[index]
    return [bucket[::-1] for bucket in reversed(buckets)]

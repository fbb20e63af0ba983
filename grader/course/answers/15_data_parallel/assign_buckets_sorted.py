"""Inside a bucket, too, the last parameter comes first."""
# exercise: assign_buckets
# diagnosis: wrong_value


def assign_buckets(sizes, cap_bytes):
    buckets, filled = [], 0
    for index in reversed(range(len(sizes))):
        if not buckets or filled + sizes[index] > cap_bytes:
            buckets.append([])
            filled = 0
        buckets[-1].insert(0, index)
        filled += sizes[index]
    return buckets

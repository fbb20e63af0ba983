"""These are the sizes of the parameters. Buckets hold their indices, not their sizes."""
# exercise: assign_buckets
# diagnosis: wrong_value
# not: by hand


def assign_buckets(sizes, cap_bytes):
    buckets, filled = [], 0
    for size in reversed(sizes):
        if not buckets or filled + size > cap_bytes:
            buckets.append([])
            filled = 0
        buckets[-1].append(size)
        filled += size
    return buckets

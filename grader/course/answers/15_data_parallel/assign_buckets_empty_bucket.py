# exercise: assign_buckets
# diagnosis: wrong_shape
# hint: empty bucket
def assign_buckets(sizes, cap_bytes):
    buckets, filled = [[]], 0
    for index in reversed(range(len(sizes))):
        if filled + sizes[index] > cap_bytes:
            buckets.append([])
            filled = 0
        buckets[-1].append(index)
        filled += sizes[index]
    return buckets

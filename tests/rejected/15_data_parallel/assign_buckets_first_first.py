# exercise: assign_buckets
# diagnosis: wrong_value
# hint: begin with the last parameter
def assign_buckets(sizes, cap_bytes):
    buckets, filled = [], 0
    for index in range(len(sizes)):
        if not buckets or filled + sizes[index] > cap_bytes:
            buckets.append([])
            filled = 0
        buckets[-1].append(index)
        filled += sizes[index]
    return buckets

# exercise: assign_buckets
# diagnosis: wrong_value
# hint: from the first parameter on
def assign_buckets(sizes, cap_bytes):
    buckets, used = [], 0
    for i, s in enumerate(sizes):
        if buckets and used + s <= cap_bytes:
            buckets[-1].append(i)
            used += s
        else:
            buckets.append([i])
            used = s
    return buckets[::-1]

# exercise: assign_buckets
# diagnosis: wrong_value
# hint: Close that bucket first
def assign_buckets(sizes, cap_bytes):
    buckets, cur, total = [], [], 0
    for i in reversed(range(len(sizes))):
        if sizes[i] > cap_bytes:
            buckets.append([i])
            continue
        if total + sizes[i] > cap_bytes:
            buckets.append(cur)
            cur, total = [], 0
        cur.append(i)
        total += sizes[i]
    if cur:
        buckets.append(cur)
    return buckets

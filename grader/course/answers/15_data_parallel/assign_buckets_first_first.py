"""These buckets are filled from the first parameter on. Its gradient is the last to be ready:
begin with the last parameter.
"""
# exercise: assign_buckets
# diagnosis: wrong_value
# or: REVERSED = True

REVERSED = False


def assign_buckets(sizes, cap_bytes):
    buckets, filled = [], 0
    for index in range(len(sizes)):
        if not buckets or filled + sizes[index] > cap_bytes:
            buckets.append([])
            filled = 0
        buckets[-1].append(index)
        filled += sizes[index]
    return buckets[::-1] if REVERSED else buckets

# exercise: scatter_reduce_1d
# diagnosis: exception
# hint: -
# not: 8 bits | dtype
# says: IndexError
# Counts places from one.
def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for k in range(1, len(index) + 1):
        out[index[k]] += src[k]
    return out

# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# hint: the other way round: index[i] is the place
# Reads where it should write: out[i] = src[index[i]].
def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in range(len(input)):
        out[i] += src[index[i]]
    return out

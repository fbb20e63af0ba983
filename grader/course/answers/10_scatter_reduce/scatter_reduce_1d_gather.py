"""You read src at index[i]. It is the other way round: index[i] is the place that src[i] goes to.
"""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# or: WAY = "combined"
# or: WAY = "assigned"

WAY = "added"


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i in range(len(input)):
        came = src[index[i]]
        if WAY == "added":
            out[i] += came
        elif WAY == "combined" and include_self:
            out[i] = reduced(torch.stack([out[i], came]), "sum" if reduce == "mean" else reduce)
        else:
            out[i] = came
    return out

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
        if WAY == "added":
            out[i] += src[index[i]]
        elif WAY == "combined" and include_self:
            out[i] = COMBINE[reduce](out[i], src[index[i]])
        else:
            out[i] = src[index[i]]
    return out

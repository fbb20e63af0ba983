"""With include_self=False, what input has at a place that index names does not count: the first
number of src replaces it.
"""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    count = [1] * len(input)
    for i, value in zip(index.tolist(), src):
        out[i] = COMBINE[reduce](out[i], value)
        count[i] += 1
    return divided(out, count) if reduce == "mean" else out

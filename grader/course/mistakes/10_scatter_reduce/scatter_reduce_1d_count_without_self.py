"""A mean is divided by how many numbers were added, and with include_self=True what input has
there is one of them.
"""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    seen = [include_self] * len(input)
    for i, value in zip(index.tolist(), src):
        out[i] = COMBINE[reduce](out[i], value) if seen[i] else value
        seen[i] = True
    count = torch.bincount(index, minlength=len(input))
    return divided(out, count) if reduce == "mean" else out

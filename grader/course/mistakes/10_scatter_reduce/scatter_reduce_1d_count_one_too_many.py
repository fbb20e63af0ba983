"""With include_self=False the mean is divided by one too many: what input has there was not added,
so it is not counted.
"""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    seen = [include_self] * len(input)
    for i, value in zip(index.tolist(), src):
        out[i] = COMBINE[reduce](out[i], value) if seen[i] else value
        seen[i] = True
    if reduce == "mean":
        changed = divided(out, torch.bincount(index, minlength=len(input)) + 1)
        out[index] = changed[index]
    return out

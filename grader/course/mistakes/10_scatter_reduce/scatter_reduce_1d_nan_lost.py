"""A nan among the numbers has to give nan. Python's max and min, and comparisons with < and >,
lose it; torch.maximum, torch.minimum, amax and amin keep it.
"""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# Python's max and min keep a nan that comes first, so the order matters.
# or: OWN = "last"
# or: KEEPS = "the new one"
# or: OWN = "last"; KEEPS = "the new one"

OWN = "first"
KEEPS = "the old one"


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    src = src[: len(index)]
    for i in index.unique():
        own = [input[i]] if include_self else []
        numbers = list(src[index == i])
        first, *others = numbers + own if OWN == "last" else own + numbers
        best = first
        for value in others:
            pair = (value, best) if KEEPS == "the new one" else (best, value)
            combine = {"amax": max, "amin": min}.get(reduce)
            best = combine(pair) if combine else COMBINE[reduce](best, value)
        out[i] = best
    count = torch.bincount(index, minlength=len(input)) + int(include_self)
    return divided(out, count) if reduce == "mean" else out

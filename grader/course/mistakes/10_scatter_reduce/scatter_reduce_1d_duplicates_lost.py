"""Where index names a place twice, the last one wins. Each number is combined with the old value
of that place, as in out[index] += src, which reads all of them before it writes any: combine with
what the numbers before it have left.
"""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# or: DIVIDES = True

DIVIDES = False


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    src = src[: len(index)]
    out[index] = COMBINE[reduce](out[index], src) if include_self else src
    if DIVIDES and reduce == "mean":
        count = torch.bincount(index, minlength=len(input))
        out = divided(out, count + int(include_self))
    return out

"""Where index names a place twice, the last one wins. Each number is combined with the old value
of that place, as in out[index] += src, which reads all of them before it writes any: combine with
what the numbers before it have left."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# or: DIVIDES = True

DIVIDES = False


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    src = src[: len(index)]
    if not include_self:
        out[index] = src
    elif reduce in ("sum", "mean"):
        out[index] += src
    elif reduce == "prod":
        out[index] *= src
    else:
        pairs = torch.stack([out[index], src])
        out[index] = pairs.amax(0) if reduce == "amax" else pairs.amin(0)
    if DIVIDES and reduce == "mean":
        count = torch.bincount(index, minlength=len(input)) + int(include_self)
        out = divided(out, count.clamp(min=1))
    return out

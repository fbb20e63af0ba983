"""A place that index does not name keeps what input has there, whatever include_self says: nothing
is reduced there."""
# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# Without input, every place starts with what changes nothing, also where nothing follows.
# or: START = "an infinite one"
# or: START = "zero, which is replaced"

START = "what changes nothing"


def identity(reduce, dtype):
    if reduce in ("sum", "mean") or START == "zero, which is replaced":
        return 0
    if reduce == "prod":
        return 1
    if START == "an infinite one" and dtype.is_floating_point:
        return -torch.inf if reduce == "amax" else torch.inf
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


def scatter_reduce_1d(input, index, src, reduce, include_self):
    start = input.clone() if include_self else torch.full_like(input, identity(reduce, input.dtype))
    out = start.clone()
    for i in index.unique():
        numbers = numbers_for(i, input, index, src, include_self)
        if reduce in ("amax", "amin") and START != "zero, which is replaced":
            numbers = torch.cat([start[i : i + 1], numbers])
        out[i] = reduced(numbers, reduce)
    return out

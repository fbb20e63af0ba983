"""A place that index does not name keeps what input has there, whatever include_self says: nothing
is reduced there.
"""
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
    out = input.clone() if include_self else torch.full_like(input, identity(reduce, input.dtype))
    count = [int(include_self)] * len(input)
    for i, value in zip(index.tolist(), src):
        replaces = START == "zero, which is replaced" and not count[i]
        out[i] = value if replaces else COMBINE[reduce](out[i], value)
        count[i] += 1
    return divided(out, count) if reduce == "mean" else out

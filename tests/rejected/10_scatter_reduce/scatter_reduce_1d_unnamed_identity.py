# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# hint: keeps what input has there
# Without input, every place starts with what changes nothing, also where nothing follows.
import torch

COMBINE = {"sum": torch.add, "prod": torch.mul, "amax": torch.maximum, "amin": torch.minimum}


def identity(reduce, dtype):
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone() if include_self else torch.full_like(input, identity(reduce, input.dtype))
    count = torch.full((len(input),), int(include_self))
    for i, value in zip(index, src):
        out[i] = COMBINE["sum" if reduce == "mean" else reduce](out[i], value)
        count[i] += 1
    if reduce == "mean":
        count = count.clamp(min=1)
        out = out / count if out.is_floating_point() else out // count
    return out.to(input.dtype)

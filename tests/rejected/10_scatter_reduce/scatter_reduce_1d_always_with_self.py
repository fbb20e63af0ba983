# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# hint: does not count
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    count = torch.ones(len(input), dtype=torch.int64)
    for i, value in zip(index, src):
        count[i] += 1
        if reduce in ("sum", "mean"):
            out[i] += value
        elif reduce == "prod":
            out[i] *= value
        elif reduce == "amax":
            out[i] = torch.maximum(out[i], value)
        elif reduce == "amin":
            out[i] = torch.minimum(out[i], value)
    if reduce == "mean":
        out = out / count if out.is_floating_point() else out // count
    return out.to(input.dtype)

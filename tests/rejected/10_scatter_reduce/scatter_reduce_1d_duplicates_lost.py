# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# hint: the last one wins
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    src = src[: len(index)]
    if not include_self:
        out[index] = src
    elif reduce in ("sum", "mean"):
        out[index] += src
    elif reduce == "prod":
        out[index] *= src
    elif reduce == "amax":
        out[index] = torch.maximum(out[index], src)
    else:
        out[index] = torch.minimum(out[index], src)
    return out

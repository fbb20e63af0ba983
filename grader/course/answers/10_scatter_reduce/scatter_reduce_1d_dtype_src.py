# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# hint: Integers above 2**24
# Result in the dtype of src/float
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for place in index.unique().tolist():
        v = src[: len(index)][index == place]
        if include_self:
            v = torch.cat([v, input[place : place + 1]])
        f = {"sum": torch.sum, "prod": torch.prod, "amax": torch.amax, "amin": torch.amin}.get(
            reduce
        )
        if f:
            out[place] = f(v)
        else:
            out[place] = v.float().mean().floor() if not v.is_floating_point() else v.mean()
    return out

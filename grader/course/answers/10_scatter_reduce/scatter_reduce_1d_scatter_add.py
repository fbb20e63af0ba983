# exercise: scatter_reduce_1d
# diagnosis: forbidden_call
# hint: Write it with the rest of torch
# says: scatter_add is what
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    if reduce in ("sum", "mean"):
        if not include_self:
            out[index] = 0
        out.scatter_add_(0, index, src)
        return out
    for i, value in zip(index.tolist(), src):
        out[i] = max(out[i], value)
    return out

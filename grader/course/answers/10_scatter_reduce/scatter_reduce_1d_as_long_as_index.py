# exercise: scatter_reduce_1d
# diagnosis: wrong_shape
# hint: as many places as input
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = torch.zeros(int(index.max()) + 3, dtype=input.dtype)
    for i, value in zip(index, src):
        out[i] += value
    return out

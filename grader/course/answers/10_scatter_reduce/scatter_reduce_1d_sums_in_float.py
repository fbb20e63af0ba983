# exercise: scatter_reduce_1d
# diagnosis: wrong_dtype
# hint: torch.zeros_like(input)
# not: `/` | divide with
# The sums are kept in a tensor of torch's default dtype; nothing is divided.
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = torch.zeros(len(input))
    out += input
    for i, value in zip(index.tolist(), src):
        out[i] += value
    return out

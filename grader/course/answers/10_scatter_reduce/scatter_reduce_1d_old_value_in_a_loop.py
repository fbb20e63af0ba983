# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# hint: combined with the old value
# not: one by one
# Goes through the numbers one by one, but always from input.
import torch

COMBINE = {
    "sum": torch.add,
    "mean": torch.add,
    "prod": torch.mul,
    "amax": torch.maximum,
    "amin": torch.minimum,
}


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    for i, value in zip(index.tolist(), src):
        out[i] = COMBINE[reduce](input[i], value) if include_self else value
    return out

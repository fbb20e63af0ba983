# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# hint: counts as one more number
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    src = src[: len(index)]
    for i in index.unique():
        group = src[index == i]
        if reduce == "mean":
            total = group.sum()
            out[i] = total / len(group) if group.is_floating_point() else total // len(group)
        else:
            out[i] = getattr(group, reduce)()
    return out

# exercise: scatter_reduce_1d
# diagnosis: none
# Place by place, with the numbers that index sends there.
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    src = src[: len(index)]
    out = input.clone()
    for i in index.unique():
        group = src[index == i]
        if include_self:
            group = torch.cat([input[i : i + 1], group])
        if reduce == "mean":
            total = group.sum()
            out[i] = total / len(group) if group.is_floating_point() else total // len(group)
        else:
            out[i] = getattr(group, reduce)()
    return out

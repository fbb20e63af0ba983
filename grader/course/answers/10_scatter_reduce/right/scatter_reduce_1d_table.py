# exercise: scatter_reduce_1d
# diagnosis: none
# A table with a row for each place, filled up with what changes nothing.
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    n = len(input)
    src = src[: len(index)]
    if n == 0 or len(index) == 0:
        return input.clone()
    hit = index[None, :] == torch.arange(n)[:, None]
    values = src[None, :].expand(n, -1)
    if include_self:
        hit = torch.cat([hit, torch.ones(n, 1, dtype=torch.bool)], 1)
        values = torch.cat([values, input[:, None]], 1)
    if reduce in ("sum", "mean"):
        total = torch.where(hit, values, torch.zeros_like(values)).sum(1)
        if reduce == "mean":
            count = hit.sum(1).clamp(min=1)
            total = total / count if total.is_floating_point() else total // count
    elif reduce == "prod":
        total = torch.where(hit, values, torch.ones_like(values)).prod(1)
    else:
        # any value of the row itself does for a filling
        first = values.gather(1, hit.int().argmax(1, keepdim=True))
        filled = torch.where(hit, values, first)
        total = filled.amax(1) if reduce == "amax" else filled.amin(1)
    named = torch.bincount(index, minlength=n) > 0
    return torch.where(named, total.to(input.dtype), input)

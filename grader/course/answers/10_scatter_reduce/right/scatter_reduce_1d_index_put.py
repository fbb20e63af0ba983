# exercise: scatter_reduce_1d
# diagnosis: none
# Sums with index_put_, extremes in rounds: each round takes one number for each place.
import torch


def _add(out, index, src):
    return out.index_put_((index,), src, accumulate=True)


def scatter_reduce_1d(input, index, src, reduce, include_self):
    src = src[: len(index)]
    out = input.clone()
    if reduce in ("sum", "mean"):
        if not include_self:
            out[index] = 0
        _add(out, index, src)
        if reduce == "mean":
            count = torch.full((len(out),), int(include_self))
            _add(count, index, torch.ones_like(index))
            count = torch.where(count > 0, count, 1)
            out = out / count if out.is_floating_point() else (out // count).to(out.dtype)
        return out
    step = {"prod": torch.mul, "amax": torch.maximum, "amin": torch.minimum}[reduce]
    left = torch.arange(len(index))
    fresh = not include_self
    while len(left):
        chosen = torch.full((len(input),), -1)
        for j in left.tolist():
            chosen[index[j]] = j
        chosen = chosen[chosen >= 0]
        where = index[chosen]
        out[where] = src[chosen] if fresh else step(out[where], src[chosen])
        fresh = False
        left = left[~torch.isin(left, chosen)]
    return out

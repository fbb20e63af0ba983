# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# hint: amin gives the largest
# not: exchanged
import torch

COMBINE = {"sum": torch.add, "mean": torch.add, "prod": torch.mul}


def scatter_reduce_1d(input, index, src, reduce, include_self):
    combine = COMBINE.get(reduce, torch.maximum)
    out = input.clone()
    count = [int(include_self)] * len(input)
    for i, value in zip(index.tolist(), src):
        out[i] = combine(out[i], value) if count[i] else value
        count[i] += 1
    if reduce == "mean":
        divisor = torch.tensor(count).clamp(min=1)
        rounding = None if out.is_floating_point() else "floor"
        out = torch.div(out, divisor, rounding_mode=rounding).to(input.dtype)
    return out

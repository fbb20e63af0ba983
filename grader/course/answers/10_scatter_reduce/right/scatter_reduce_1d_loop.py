# exercise: scatter_reduce_1d
# diagnosis: none
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
    count = [int(include_self)] * len(input)
    for i, value in zip(index.tolist(), src):
        out[i] = COMBINE[reduce](out[i], value) if count[i] else value
        count[i] += 1
    if reduce == "mean":
        for i, n in enumerate(count):
            if n > 1:
                floor = None if out.is_floating_point() else "floor"
                out[i] = torch.div(out[i], n, rounding_mode=floor)
    return out

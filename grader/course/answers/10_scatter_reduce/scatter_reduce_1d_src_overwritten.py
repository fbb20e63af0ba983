# exercise: scatter_reduce_1d
# diagnosis: input_changed
# hint: The arguments belong to the caller
# not: combine into input.clone()
# input is copied, src is not.
import torch

COMBINE = {"sum": torch.add, "prod": torch.mul, "amax": torch.maximum, "amin": torch.minimum}


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    count = [int(include_self)] * len(input)
    combine = COMBINE["sum" if reduce == "mean" else reduce]
    for k, i in enumerate(index.tolist()):
        if count[i]:
            src[k] = combine(out[i], src[k])
        out[i] = src[k]
        count[i] += 1
    if reduce == "mean":
        divisor = torch.tensor(count).clamp(min=1)
        rounding = None if out.is_floating_point() else "floor"
        out = torch.div(out, divisor, rounding_mode=rounding).to(input.dtype)
    return out

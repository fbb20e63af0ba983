# exercise: scatter_reduce_1d
# diagnosis: aliased
# hint: also where there is nothing
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input if len(index) == 0 else input.clone()
    count = [int(include_self)] * len(input)
    for i, value in zip(index.tolist(), src):
        count[i] += 1
        if count[i] == 1:
            out[i] = value
        elif reduce in ("sum", "mean"):
            out[i] = out[i] + value
        elif reduce == "prod":
            out[i] = out[i] * value
        elif reduce == "amax":
            out[i] = torch.maximum(out[i], value)
        else:
            out[i] = torch.minimum(out[i], value)
    if reduce == "mean":
        if len(index):
            divisor = torch.tensor(count).clamp(min=1)
            rounding = None if out.is_floating_point() else "floor"
            out = torch.div(out, divisor, rounding_mode=rounding).to(input.dtype)
    return out

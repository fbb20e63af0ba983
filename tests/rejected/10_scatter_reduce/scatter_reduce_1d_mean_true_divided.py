# exercise: scatter_reduce_1d
# diagnosis: wrong_dtype
# hint: Dividing with /
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
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
        out = out / torch.tensor(count).clamp(min=1)
    return out

# exercise: scatter_reduce_1d
# diagnosis: exception
# hint: On other dtypes this reduction works
# A difference takes back what input has; torch knows none of bools.
import torch

COMBINE = {"sum": torch.add, "prod": torch.mul, "amax": torch.maximum, "amin": torch.minimum}


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    src = src[: len(index)]
    for i in index.unique().tolist():
        group = src[index == i]
        if reduce in ("sum", "mean"):
            total = input[i]
            for value in group:
                total = total + value
            total = total if include_self else total - input[i]
            count = len(group) + include_self
            if reduce == "mean":
                total = total // count if not input.is_floating_point() else total / count
        else:
            total = input[i] if include_self else group[0]
            for value in group[0 if include_self else 1 :]:
                total = COMBINE[reduce](total, value)
        out[i] = total
    return out

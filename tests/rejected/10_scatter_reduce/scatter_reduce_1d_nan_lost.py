# exercise: scatter_reduce_1d
# diagnosis: wrong_value
# hint: has to give nan
import torch


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    src = src[: len(index)]
    for i in index.unique():
        group = src[index == i].tolist() + ([input[i].item()] if include_self else [])
        if reduce == "sum":
            out[i] = sum(group)
        elif reduce == "mean":
            whole = not input.is_floating_point()
            out[i] = sum(group) // len(group) if whole else sum(group) / len(group)
        elif reduce == "prod":
            total = 1
            for value in group:
                total *= value
            out[i] = total
        elif reduce == "amax":
            best = float("-inf") if input.is_floating_point() else group[0]
            for value in group:
                best = max(best, value)
            out[i] = best
        else:
            best = float("inf") if input.is_floating_point() else group[0]
            for value in group:
                best = min(best, value)
            out[i] = best
    return out

# exercise: scatter_reduce_1d
# diagnosis: exception
# hint: An empty index names no place
# not: may be shorter
# Right wherever there is an index.
import torch

COMBINE = {"sum": torch.add, "prod": torch.mul, "amax": torch.maximum, "amin": torch.minimum}


def scatter_reduce_1d(input, index, src, reduce, include_self):
    out = input.clone()
    src = src[: len(index)]
    for i in range(int(index.max()) + 1):
        numbers = list(src[index == i])
        if not numbers:
            continue
        numbers += [input[i]] if include_self else []
        total = numbers[0]
        for value in numbers[1:]:
            total = COMBINE["sum" if reduce == "mean" else reduce](total, value)
        if reduce == "mean":
            total = total / len(numbers) if out.is_floating_point() else total // len(numbers)
        out[i] = total
    return out

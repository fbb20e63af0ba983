# exercise: scatter_reduce_1d
# diagnosis: none
# Plain Python numbers, and a tensor made at the end.
import math
from functools import reduce as fold

import torch


def _largest(a, b):
    return a if a != a or a > b else b


def _smallest(a, b):
    return a if a != a or a < b else b


def scatter_reduce_1d(input, index, src, reduce, include_self):
    groups = {}
    for i, value in zip(index.tolist(), src.tolist()):
        groups.setdefault(i, []).append(value)
    out = input.tolist()
    for i, group in groups.items():
        if include_self:
            group = [out[i], *group]
        if reduce == "sum":
            out[i] = sum(group)
        elif reduce == "mean":
            whole = not input.is_floating_point()
            out[i] = sum(group) // len(group) if whole else math.fsum(group) / len(group)
        elif reduce == "prod":
            out[i] = math.prod(group)
        else:
            out[i] = fold(_largest if reduce == "amax" else _smallest, group)
    return torch.tensor(out, dtype=input.dtype)

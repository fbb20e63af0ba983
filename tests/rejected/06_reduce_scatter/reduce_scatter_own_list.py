# exercise: reduce_scatter
# diagnosis: wrong_value
# hint: combine your own chunks
# Combines the wrong things: the own list, and nothing from anybody.
import torch
import torch.distributed as dist


def merge(op, a, b):
    if op == dist.ReduceOp.MIN:
        return torch.minimum(a, b)
    if op == dist.ReduceOp.MAX:
        return torch.maximum(a, b)
    return a + b


def reduce_scatter(chunks, op):
    total = chunks[0].clone()
    for chunk in chunks[1:]:
        total = merge(op, total, chunk)
    return total / len(chunks) if op == dist.ReduceOp.AVG else total

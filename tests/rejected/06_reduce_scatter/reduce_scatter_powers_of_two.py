# exercise: reduce_scatter
# diagnosis: exception
# hint: power of two
# Pairs by exclusive or, as in many listings.
import torch
import torch.distributed as dist


def merge(op, a, b):
    if op == dist.ReduceOp.MIN:
        return torch.minimum(a, b)
    if op == dist.ReduceOp.MAX:
        return torch.maximum(a, b)
    return a + b


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = chunks[rank].clone()
    k = 1
    while k < n:
        buffer = torch.empty_like(total)
        request = dist.isend(chunks[rank ^ k], rank ^ k)
        dist.recv(buffer, rank ^ k)
        request.wait()
        total = merge(op, total, buffer)
        k += 1
    return total / n if op == dist.ReduceOp.AVG else total

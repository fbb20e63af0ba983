# exercise: reduce_scatter
# diagnosis: too_many_bytes
# hint: no rank has to see whole lists
# earns: 0.5
# Reduce everything on rank 0, then scatter.
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
    mine = torch.stack(chunks)
    result = torch.empty_like(chunks[0])
    if rank != 0:
        dist.send(mine, 0)
        dist.recv(result, 0)
        return result
    buffer = torch.empty_like(mine)
    for src in range(1, n):
        dist.recv(buffer, src)
        mine = merge(op, mine, buffer)
    if op == dist.ReduceOp.AVG:
        mine = mine / n
    for dst in range(1, n):
        dist.send(mine[dst], dst)
    return mine[0].clone()

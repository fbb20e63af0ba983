# exercise: reduce_scatter
# diagnosis: too_many_bytes
# hint: no rank has to see whole lists
# earns: 0.5
# An all-gather of whole lists, and a reduction at home.
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
    total = chunks[rank].clone()
    for k in range(1, n):
        theirs = torch.empty_like(mine)
        request = dist.isend(mine, (rank + k) % n)
        dist.recv(theirs, (rank - k) % n)
        request.wait()
        total = merge(op, total, theirs[rank])
    return total / n if op == dist.ReduceOp.AVG else total

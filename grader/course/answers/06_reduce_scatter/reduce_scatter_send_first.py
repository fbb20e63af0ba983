# exercise: reduce_scatter
# diagnosis: deadlock
# hint: All ranks are in a send
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
    for k in range(1, n):
        buffer = torch.empty_like(total)
        dist.send(chunks[(rank + k) % n], (rank + k) % n)
        dist.recv(buffer, (rank - k) % n)
        total = merge(op, total, buffer)
    return total / n if op == dist.ReduceOp.AVG else total

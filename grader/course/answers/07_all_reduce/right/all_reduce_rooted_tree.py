# exercise: all_reduce_rooted
# diagnosis: none
# A binomial tree up, and the same tree down.
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp


def combine(op, x, other):
    if op == ReduceOp.MIN:
        x.copy_(torch.minimum(x, other))
    elif op == ReduceOp.MAX:
        x.copy_(torch.maximum(x, other))
    elif op == ReduceOp.PRODUCT:
        x.mul_(other)
    else:
        x.add_(other)


def all_reduce_rooted(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    steps = [1 << k for k in range((n - 1).bit_length())]
    buffer = torch.empty_like(x)
    for step in steps:
        if rank % (2 * step) == step:
            dist.send(x, rank - step)
        elif rank % (2 * step) == 0 and rank + step < n:
            dist.recv(buffer, rank + step)
            combine(op, x, buffer)
    if rank == 0 and op == ReduceOp.AVG:
        x.div_(n)
    for step in reversed(steps):
        if rank % (2 * step) == step:
            dist.recv(x, rank - step)
        elif rank % (2 * step) == 0 and rank + step < n:
            dist.send(x, rank + step)

# exercise: all_reduce_rooted
# diagnosis: wrong_value
# hint: `mine = torch.minimum(mine, came)` in combine
# not: received into another tensor | broadcast, is missing | second half
import torch
import torch.distributed as dist


def combine(mine, came, op):
    if op == dist.ReduceOp.MIN:
        mine = torch.minimum(mine, came)
    elif op == dist.ReduceOp.MAX:
        mine = torch.maximum(mine, came)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came


def all_reduce_rooted(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(x, 0)
        dist.recv(x, 0)
        return
    buffer = torch.empty_like(x)
    for src in range(1, n):
        dist.recv(buffer, src)
        combine(x, buffer, op)
    if op == dist.ReduceOp.AVG:
        x /= n
    for dst in range(1, n):
        dist.send(x, dst)

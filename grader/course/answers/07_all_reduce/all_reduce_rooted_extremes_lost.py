# exercise: all_reduce_rooted
# diagnosis: wrong_value
# hint: makes a new tensor, and nothing keeps it
import torch
import torch.distributed as dist

R = dist.ReduceOp


def combine(total, came, op):
    if op == R.MAX:
        torch.maximum(total, came)
    elif op == R.MIN:
        torch.minimum(total, came)
    elif op == R.PRODUCT:
        total *= came
    else:
        total += came


def all_reduce_rooted(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank:
        dist.send(x, 0)
        dist.recv(x, 0)
        return
    came = torch.empty_like(x)
    for src in range(1, n):
        dist.recv(came, src)
        combine(x, came, op)
    if op == R.AVG:
        x /= n
    for dst in range(1, n):
        dist.send(x, dst)

# exercise: ring_all_reduce
# diagnosis: exception
# hint: power of two
# Recursive doubling: everybody swaps with rank ^ 1, rank ^ 2, ...
import torch
import torch.distributed as dist


def combine(op, mine, came):
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        came = torch.empty_like(x)
        request = dist.isend(x, rank ^ step)
        dist.recv(came, rank ^ step)
        request.wait()
        combine(op, x, came)
        step *= 2
    if op == dist.ReduceOp.AVG:
        x /= n

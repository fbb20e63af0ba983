# exercise: recursive_doubling_all_reduce
# diagnosis: wrong_value
# hint: counted twice
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


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    came = torch.empty_like(x)
    step = 1
    while step < n:
        request = dist.isend(x, (rank + step) % n)
        dist.recv(came, (rank - step) % n)
        request.wait()
        combine(op, x, came)
        step *= 2
    if op == dist.ReduceOp.AVG:
        x /= n

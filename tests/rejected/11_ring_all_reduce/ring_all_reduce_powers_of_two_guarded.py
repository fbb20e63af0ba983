# exercise: ring_all_reduce
# diagnosis: wrong_value
# hint: power of two
# Recursive doubling that leaves out partners who do not exist.
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
        partner = rank ^ step
        step *= 2
        if partner < n:
            came = torch.empty_like(x)
            request = dist.isend(x, partner)
            dist.recv(came, partner)
            request.wait()
            combine(op, x, came)
    if op == dist.ReduceOp.AVG:
        x /= n

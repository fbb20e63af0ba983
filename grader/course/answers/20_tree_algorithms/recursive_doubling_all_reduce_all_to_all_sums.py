# exercise: recursive_doubling_all_reduce
# diagnosis: nondeterministic
# hint: get the same bits
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
    """Each rank collects every x, and adds them up in its own order."""
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = x.clone()
    for k in range(1, n):
        came = torch.empty_like(x)
        request = dist.isend(mine, (rank + k) % n)
        dist.recv(came, (rank - k) % n)
        request.wait()
        combine(op, x, came)
    if op == dist.ReduceOp.AVG:
        x /= n

# exercise: recursive_doubling_all_reduce
# diagnosis: too_many_rounds
# hint: up a tree and down
# earns: 0.5
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
    """Up a tree and down again."""
    rank, n = dist.get_rank(), dist.get_world_size()
    came = torch.empty_like(x)
    steps = [1 << k for k in range((n - 1).bit_length())]
    for s in steps:
        if rank % (2 * s) == s:
            dist.send(x, rank - s)
        elif rank % (2 * s) == 0 and rank + s < n:
            dist.recv(came, rank + s)
            combine(op, x, came)
    if op == dist.ReduceOp.AVG:
        x /= n
    for s in reversed(steps):
        if rank % (2 * s) == 0 and rank + s < n:
            dist.send(x, rank + s)
        elif rank % (2 * s) == s:
            dist.recv(x, rank - s)

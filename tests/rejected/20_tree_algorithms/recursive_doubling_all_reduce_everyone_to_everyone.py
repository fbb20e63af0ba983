# exercise: recursive_doubling_all_reduce
# diagnosis: too_many_rounds
# hint: to each of the others
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
    """Each rank collects every x, and adds them up in rank order."""
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for k in range(1, n):
        request = dist.isend(parts[rank], (rank + k) % n)
        dist.recv(parts[(rank - k) % n], (rank - k) % n)
        request.wait()
    x.copy_(parts[0])
    for part in parts[1:]:
        combine(op, x, part)
    if op == dist.ReduceOp.AVG:
        x /= n

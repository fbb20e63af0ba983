# exercise: ring_all_reduce
# diagnosis: too_many_bytes
# hint: holds one chunk
# earns: 0.5
# A sum that grows on its way round, and goes round once more: whole tensors.
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
    if n == 1:
        return
    left, right = (rank - 1) % n, (rank + 1) % n
    if rank > 0:
        came = torch.empty_like(x)
        dist.recv(came, left)
        combine(op, x, came)
    dist.send(x, right) if rank < n - 1 else None
    if rank == n - 1 and op == dist.ReduceOp.AVG:
        x /= n
    if rank < n - 1:
        dist.recv(x, left)
    if rank != n - 2:
        dist.send(x, right)

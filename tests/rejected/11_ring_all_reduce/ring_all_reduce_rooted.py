# exercise: ring_all_reduce
# diagnosis: too_many_bytes
# hint: holds one chunk
# earns: 0.5
# not: power of two
# Through rank 0: right, and rank 0 has all the work.
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
    if rank != 0:
        dist.send(x, 0)
        dist.recv(x, 0)
        return
    came = torch.empty_like(x)
    for other in range(1, n):
        dist.recv(came, other)
        combine(op, x, came)
    if op == dist.ReduceOp.AVG:
        x /= n
    for other in range(1, n):
        dist.send(x, other)

# exercise: all_reduce_rooted
# diagnosis: forbidden_call
# hint: dist.reduce and dist.broadcast
import torch
import torch.distributed as dist


def combine(op, x, other):
    if op == dist.ReduceOp.MIN:
        torch.minimum(x, other, out=x)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(x, other, out=x)
    elif op == dist.ReduceOp.PRODUCT:
        x *= other
    else:
        x += other


def all_reduce_rooted(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(x, 0)
    else:
        buffer = torch.empty_like(x)
        for src in range(1, n):
            dist.recv(buffer, src)
            combine(op, x, buffer)
        if op == dist.ReduceOp.AVG:
            x /= n
    dist.broadcast(x, 0)

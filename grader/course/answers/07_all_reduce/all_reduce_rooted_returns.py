# exercise: all_reduce_rooted
# diagnosis: wrong_type
# hint: in place
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
    total, buffer = x.clone(), torch.empty_like(x)
    if rank != 0:
        dist.send(x, 0)
        dist.recv(total, 0)
        return total
    for src in range(1, n):
        dist.recv(buffer, src)
        combine(op, total, buffer)
    if op == dist.ReduceOp.AVG:
        total /= n
    for dst in range(1, n):
        dist.send(total, dst)
    return total

# exercise: all_reduce_rooted
# diagnosis: none
import torch
import torch.distributed as dist


def all_reduce_rooted(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(x, 0)
        dist.recv(x, 0)
        return
    buffer = torch.empty_like(x)
    for src in range(1, n):
        dist.recv(buffer, src)
        if op == dist.ReduceOp.MIN:
            torch.minimum(x, buffer, out=x)
        elif op == dist.ReduceOp.MAX:
            torch.maximum(x, buffer, out=x)
        elif op == dist.ReduceOp.PRODUCT:
            x *= buffer
        else:
            x += buffer
    if op == dist.ReduceOp.AVG:
        x /= n
    for dst in range(1, n):
        dist.send(x, dst)

# exercise: all_reduce_rooted
# diagnosis: wrong_value
# hint: Every rank but the root ends with the result
# not: received into another tensor | second half
# The root combines into new tensors, and sends the last of them to all others.
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
            x = torch.minimum(x, buffer)
        elif op == dist.ReduceOp.MAX:
            x = torch.maximum(x, buffer)
        elif op == dist.ReduceOp.PRODUCT:
            x = x * buffer
        else:
            x = x + buffer
    if op == dist.ReduceOp.AVG:
        x = x / n
    for dst in range(1, n):
        dist.send(x, dst)

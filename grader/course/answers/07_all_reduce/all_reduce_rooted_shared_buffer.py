# exercise: all_reduce_rooted
# diagnosis: buffer_race
# hint: one buffer per irecv
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
        dist.recv(x, 0)
        return
    buffer = torch.empty_like(x)
    requests = [dist.irecv(buffer, src) for src in range(1, n)]
    for request in requests:
        request.wait()
        combine(op, x, buffer)
    if op == dist.ReduceOp.AVG:
        x /= n
    for dst in range(1, n):
        dist.send(x, dst)

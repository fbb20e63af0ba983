# exercise: all_reduce_rooted
# diagnosis: wrong_value
# hint: the root's own
import torch
import torch.distributed as dist


def all_reduce_rooted(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(x, 0)
        dist.recv(x, 0)
        return
    if n == 1:
        return
    parts = [torch.empty_like(x) for _ in range(n - 1)]
    for part, src in zip(parts, range(1, n), strict=True):
        dist.recv(part, src)
    stack = torch.stack(parts)
    if op == dist.ReduceOp.SUM:
        x.copy_(stack.sum(0))
    elif op == dist.ReduceOp.AVG:
        x.copy_(stack.mean(0))
    elif op == dist.ReduceOp.MIN:
        x.copy_(stack.amin(0))
    elif op == dist.ReduceOp.MAX:
        x.copy_(stack.amax(0))
    else:
        x.copy_(stack.prod(0))
    for dst in range(1, n):
        dist.send(x, dst)

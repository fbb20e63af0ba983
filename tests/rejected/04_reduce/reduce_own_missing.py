# exercise: reduce
# diagnosis: wrong_value
# hint: own x is missing
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != dst:
        dist.send(x, dst)
        return
    if n == 1:
        return
    parts = []
    for src in range(n):
        if src != dst:
            part = torch.empty_like(x)
            dist.recv(part, src)
            parts.append(part)
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

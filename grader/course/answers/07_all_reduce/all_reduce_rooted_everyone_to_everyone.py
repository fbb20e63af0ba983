# exercise: all_reduce_rooted
# diagnosis: too_many_messages
# hint: n(n − 1)
import torch
import torch.distributed as dist


def all_reduce_rooted(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() if src == rank else torch.empty_like(x) for src in range(n)]
    requests = []
    for other in range(n):
        if other != rank:
            requests += [dist.isend(parts[rank], other), dist.irecv(parts[other], other)]
    for request in requests:
        request.wait()
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

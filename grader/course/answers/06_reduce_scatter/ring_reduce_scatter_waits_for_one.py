# exercise: ring_reduce_scatter
# diagnosis: unwaited_request
# hint: every one before you return
import torch
import torch.distributed as dist


def merge(op, a, b):
    if op == dist.ReduceOp.MIN:
        return torch.minimum(a, b)
    if op == dist.ReduceOp.MAX:
        return torch.maximum(a, b)
    return a + b


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    partial = chunks[rank - 1].clone()
    for s in range(2, n + 1):
        came = torch.empty_like(partial)
        send = dist.isend(partial, (rank + 1) % n)
        receive = dist.irecv(came, (rank - 1) % n)
        receive.wait()
        partial = merge(op, came, chunks[(rank - s) % n])
    return partial / n if op == dist.ReduceOp.AVG else partial

# exercise: reduce_scatter
# diagnosis: input_changed
# hint: belong to the caller
import torch
import torch.distributed as dist


def merge(op, a, b):
    if op == dist.ReduceOp.MIN:
        return torch.minimum(a, b)
    if op == dist.ReduceOp.MAX:
        return torch.maximum(a, b)
    return a + b


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    buffer = torch.empty_like(chunks[0])
    for k in range(1, n):
        request = dist.isend(chunks[(rank + k) % n], (rank + k) % n)
        dist.recv(buffer, (rank - k) % n)
        request.wait()
        chunks[rank].copy_(merge(op, chunks[rank], buffer))
    result = chunks[rank].clone()
    return result / n if op == dist.ReduceOp.AVG else result

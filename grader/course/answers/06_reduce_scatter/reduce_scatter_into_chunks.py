# exercise: reduce_scatter
# diagnosis: aliased
# hint: list(chunks) copies the list
# list(chunks) is a new list of the same tensors.
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
    parts = list(chunks)
    buffer = torch.empty_like(parts[0])
    for k in range(1, n):
        request = dist.isend(parts[(rank + k) % n], (rank + k) % n)
        dist.recv(buffer, (rank - k) % n)
        request.wait()
        parts[rank].copy_(merge(op, parts[rank], buffer))
    if op == dist.ReduceOp.AVG:
        parts[rank] /= n
    return parts[rank]

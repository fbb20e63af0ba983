# exercise: ring_reduce_scatter
# diagnosis: aliased
# hint: list(chunks) copies the list
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
    parts = list(chunks)
    buffer = torch.empty_like(parts[0])
    for s in range(1, n):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(buffer, (rank - 1) % n)
        request.wait()
        i = (rank - s - 1) % n
        parts[i].copy_(merge(op, parts[i], buffer))
    if op == dist.ReduceOp.AVG:
        parts[rank] /= n
    return parts[rank]

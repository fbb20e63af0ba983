# exercise: ring_reduce_scatter
# diagnosis: wrong_shape
# hint: one chunk
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
    parts = torch.stack(chunks)
    for s in range(1, n):
        came = torch.empty_like(chunks[0])
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        i = (rank - s - 1) % n
        parts[i] = merge(op, parts[i], came)
    return parts / n if op == dist.ReduceOp.AVG else parts

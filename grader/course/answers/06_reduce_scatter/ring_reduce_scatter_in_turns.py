# exercise: ring_reduce_scatter
# diagnosis: too_many_rounds
# hint: a step takes two rounds
# earns: 0.5
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
    parts = [chunk.clone() for chunk in chunks]
    buffer = torch.empty_like(parts[0])
    for s in range(1, n):
        if rank % 2:
            dist.recv(buffer, (rank - 1) % n)
            dist.send(parts[(rank - s) % n], (rank + 1) % n)
        else:
            dist.send(parts[(rank - s) % n], (rank + 1) % n)
            dist.recv(buffer, (rank - 1) % n)
        i = (rank - s - 1) % n
        parts[i] = merge(op, parts[i], buffer)
    return parts[rank] / n if op == dist.ReduceOp.AVG else parts[rank]

# exercise: ring_reduce_scatter
# diagnosis: input_changed
# hint: belong to the caller
# Adds up in the caller's chunks, and returns a copy.
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
    buffer = torch.empty_like(chunks[0])
    for s in range(1, n):
        request = dist.isend(chunks[(rank - s) % n], (rank + 1) % n)
        dist.recv(buffer, (rank - 1) % n)
        request.wait()
        mine = chunks[(rank - s - 1) % n]
        mine.copy_(merge(op, mine, buffer))
    result = chunks[rank].clone()
    return result / n if op == dist.ReduceOp.AVG else result

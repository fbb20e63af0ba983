# exercise: ring_reduce_scatter
# diagnosis: buffer_race
# hint: Receive into a new tensor
# Receives into the partial result that is still being sent.
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
        request = dist.isend(partial, (rank + 1) % n)
        dist.recv(partial, (rank - 1) % n)
        request.wait()
        partial = merge(op, partial, chunks[(rank - s) % n])
    return partial / n if op == dist.ReduceOp.AVG else partial

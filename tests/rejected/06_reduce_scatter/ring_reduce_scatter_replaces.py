# exercise: ring_reduce_scatter
# diagnosis: wrong_value
# hint: Your own chunk is not in the result
# As in an all-gather: what comes replaces what was there.
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
    for s in range(1, n):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(parts[(rank - s - 1) % n], (rank - 1) % n)
        request.wait()
    return parts[rank] / n if op == dist.ReduceOp.AVG and n == 1 else parts[rank]

# exercise: ring_reduce_scatter
# diagnosis: wrong_value
# hint: completes another chunk
# not: before wait() | zeros
# The schedule completes chunk rank + 1, and chunk rank is returned.
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
    for s in range(n - 1):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(buffer, (rank - 1) % n)
        request.wait()
        i = (rank - s - 1) % n
        parts[i] = merge(op, parts[i], buffer)
    return parts[rank] / n if op == dist.ReduceOp.AVG else parts[rank]

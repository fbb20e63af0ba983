# exercise: reduce_scatter
# diagnosis: wrong_value
# hint: the distance doubles
# Doubles the distance although every partner is needed.
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
    total = chunks[rank].clone()
    k = 1
    while k < n:
        buffer = torch.empty_like(total)
        request = dist.isend(chunks[(rank + k) % n], (rank + k) % n)
        dist.recv(buffer, (rank - k) % n)
        request.wait()
        total = merge(op, total, buffer)
        k *= 2
    return total / n if op == dist.ReduceOp.AVG else total

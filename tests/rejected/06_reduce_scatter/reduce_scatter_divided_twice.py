# exercise: reduce_scatter
# diagnosis: wrong_value
# hint: divided twice
# Each rank divides what it sends, and the sum is divided again.
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
    average = op == dist.ReduceOp.AVG
    mine = [chunk / n if average else chunk.clone() for chunk in chunks]
    total = mine[rank].clone()
    for k in range(1, n):
        buffer = torch.empty_like(total)
        request = dist.isend(mine[(rank + k) % n], (rank + k) % n)
        dist.recv(buffer, (rank - k) % n)
        request.wait()
        total = merge(op, total, buffer)
    return total / n if average else total

# exercise: reduce_scatter
# diagnosis: wrong_value
# hint: Your own chunk is not in the result
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
    total = None if n > 1 else chunks[0].clone()
    for k in range(1, n):
        part = torch.empty_like(chunks[0])
        request = dist.isend(chunks[(rank + k) % n], (rank + k) % n)
        dist.recv(part, (rank - k) % n)
        request.wait()
        total = part if total is None else merge(op, total, part)
    return total / n if op == dist.ReduceOp.AVG else total

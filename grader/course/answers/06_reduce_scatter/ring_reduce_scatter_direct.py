# exercise: ring_reduce_scatter
# diagnosis: not_neighbour
# hint: passes through every rank
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
    total = chunks[rank].clone()
    for k in range(1, n):
        buffer = torch.empty_like(total)
        request = dist.isend(chunks[(rank + k) % n], (rank + k) % n)
        dist.recv(buffer, (rank - k) % n)
        request.wait()
        total = merge(op, total, buffer)
    return total / n if op == dist.ReduceOp.AVG else total

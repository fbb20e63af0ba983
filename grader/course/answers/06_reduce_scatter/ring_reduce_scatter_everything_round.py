# exercise: ring_reduce_scatter
# diagnosis: too_many_bytes
# hint: No rank has to collect whole lists
# A ring all-gather of whole lists, and a reduction at home.
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
    lists = torch.empty((n, n, *chunks[0].shape), dtype=chunks[0].dtype)
    lists[rank] = torch.stack(chunks)
    for s in range(1, n):
        request = dist.isend(lists[(rank - s + 1) % n], (rank + 1) % n)
        dist.recv(lists[(rank - s) % n], (rank - 1) % n)
        request.wait()
    total = lists[0, rank].clone()
    for other in range(1, n):
        total = merge(op, total, lists[other, rank])
    return total / n if op == dist.ReduceOp.AVG else total

# exercise: ring_reduce_scatter
# diagnosis: buffer_race
# hint: do not write to it
# Changes what is being sent, before it has waited.
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
    outgoing = chunks[rank - 1].clone()
    incoming = torch.empty_like(outgoing)
    for s in range(2, n + 1):
        request = dist.isend(outgoing, (rank + 1) % n)
        dist.recv(incoming, (rank - 1) % n)
        outgoing.copy_(merge(op, incoming, chunks[(rank - s) % n]))
        request.wait()
    return outgoing / n if op == dist.ReduceOp.AVG else outgoing

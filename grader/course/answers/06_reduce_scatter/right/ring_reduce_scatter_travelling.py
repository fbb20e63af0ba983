# exercise: ring_reduce_scatter
# diagnosis: none
# Only the partial result that is travelling is kept, in two buffers that change places.
import torch
import torch.distributed as dist


def merge(op, into, other):
    if op == dist.ReduceOp.MIN:
        torch.minimum(into, other, out=into)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(into, other, out=into)
    else:
        into.add_(other)


def ring_reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    outgoing = chunks[rank - 1].clone()
    incoming = torch.empty_like(outgoing)
    for back in range(2, n + 1):
        work = [dist.irecv(incoming, (rank - 1) % n), dist.isend(outgoing, (rank + 1) % n)]
        for request in work:
            request.wait()
        merge(op, incoming, chunks[(rank - back) % n])
        outgoing, incoming = incoming, outgoing
    return outgoing.div_(n) if op == dist.ReduceOp.AVG else outgoing

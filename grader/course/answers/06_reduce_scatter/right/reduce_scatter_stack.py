# exercise: reduce_scatter
# diagnosis: none
# Everything at once in a batch, and one reduction over the stack.
import torch
import torch.distributed as dist


def reduce_scatter(chunks, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    found = torch.empty((n, *chunks[rank].shape), dtype=chunks[rank].dtype)
    found[rank] = chunks[rank]
    operations = []
    for other in range(n):
        if other != rank:
            operations.append(dist.P2POp(dist.isend, chunks[other], other))
            operations.append(dist.P2POp(dist.irecv, found[other], other))
    if operations:
        for work in dist.batch_isend_irecv(operations):
            work.wait()
    R = dist.ReduceOp
    if op == R.SUM:
        return found.sum(0)
    if op == R.AVG:
        return found.mean(0)
    return found.amin(0) if op == R.MIN else found.amax(0)

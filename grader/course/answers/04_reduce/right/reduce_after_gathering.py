# exercise: reduce
# diagnosis: none
# Gathers everything and reduces the stack.
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != dst:
        dist.isend(x, dst).wait()
        return
    everything = torch.empty((n, *x.shape), dtype=x.dtype)
    everything[rank] = x
    requests = [dist.irecv(everything[src], src) for src in range(n) if src != dst]
    for request in requests:
        request.wait()
    R = dist.ReduceOp
    if op == R.SUM:
        result = everything.sum(0)
    elif op == R.AVG:
        result = everything.mean(0)
    elif op == R.MIN:
        result = everything.amin(0)
    elif op == R.MAX:
        result = everything.amax(0)
    else:
        result = everything.prod(0)
    x[...] = result

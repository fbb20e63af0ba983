# exercise: gather
# diagnosis: none
import torch
import torch.distributed as dist


def gather(x, dst):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != dst:
        dist.isend(x, dst).wait()
        return
    parts = torch.empty((n, *x.shape), dtype=x.dtype)
    parts[dst] = x
    requests = [dist.irecv(parts[src], src) for src in range(n) if src != dst]
    for request in requests:
        request.wait()
    return tuple(parts)

# exercise: gather
# diagnosis: exception
# hint: sends to itself
import torch
import torch.distributed as dist


def gather(x, dst):
    rank, n = dist.get_rank(), dist.get_world_size()
    request = dist.isend(x, dst)
    if rank != dst:
        request.wait()
        return None
    parts = [torch.empty_like(x) for _ in range(n)]
    for src in range(n):
        dist.recv(parts[src], src)
    request.wait()
    return parts

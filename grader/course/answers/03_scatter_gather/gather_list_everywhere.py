# exercise: gather
# diagnosis: wrong_type
# hint: Every rank returns a list
import torch
import torch.distributed as dist


def gather(x, dst):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.zeros_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    if rank != dst:
        dist.send(x, dst)
    else:
        for src in range(n):
            if src != dst:
                dist.recv(parts[src], src)
    return parts

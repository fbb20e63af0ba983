# exercise: gather
# diagnosis: wrong_type
# hint: never returns anything
import torch
import torch.distributed as dist


def gather(x, dst):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != dst:
        dist.send(x, dst)
    else:
        parts = [torch.empty_like(x) for _ in range(n)]
        for src in range(n):
            if src == dst:
                parts[src].copy_(x)
            else:
                dist.recv(parts[src], src)

# exercise: gather
# diagnosis: wrong_value
# hint: order of arrival
import torch
import torch.distributed as dist


def gather(x, dst):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != dst:
        dist.send(x, dst)
        return None
    parts = [x.clone()]
    for _ in range(n - 1):
        part = torch.empty_like(x)
        dist.recv(part)
        parts.append(part)
    return parts

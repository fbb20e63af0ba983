# exercise: all_gather
# diagnosis: wrong_type
# hint: in an all-gather every rank does
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(x, 0)
        return None
    parts = [x.clone()]
    for src in range(1, n):
        part = torch.empty_like(x)
        dist.recv(part, src)
        parts.append(part)
    return parts

# exercise: all_gather
# diagnosis: none
# n broadcasts, one root after the other, all calls blocking.
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = []
    for src in range(n):
        part = x.clone()
        if rank == src:
            for dst in range(n):
                if dst != src:
                    dist.send(part, dst)
        else:
            dist.recv(part, src)
        parts.append(part)
    return parts

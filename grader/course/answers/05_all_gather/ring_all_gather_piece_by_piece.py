# exercise: ring_all_gather
# diagnosis: too_many_rounds
# hint: before the next one starts
# earns: 0.5
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for first in range(n):
        if rank != first:
            dist.recv(parts[first], (rank - 1) % n)
        if (rank + 1) % n != first:
            dist.send(parts[first], (rank + 1) % n)
    return parts

# exercise: ring_all_gather
# diagnosis: none
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for s in range(n - 1):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(parts[(rank - s - 1) % n], (rank - 1) % n)
        request.wait()
    return parts

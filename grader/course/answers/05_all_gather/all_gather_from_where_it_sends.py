# exercise: all_gather
# diagnosis: deadlock
# hint: none of these messages goes to a rank that waits for it
# not: If all receive first
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for step in range(1, n):
        peer = (rank + step) % n
        request = dist.isend(x, peer)
        dist.recv(parts[peer], peer)
        request.wait()
    return parts

"""A rank cannot send to itself or receive from itself, and need not: its own piece is there
already. Skip your own rank, and copy that piece with clone()."""
# exercise: all_gather
# diagnosis: exception
import torch
import torch.distributed as dist


def all_gather(x):
    n = dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    requests = [dist.isend(x, r) for r in range(n)]
    for r in range(n):
        dist.recv(parts[r], r)
    for request in requests:
        request.wait()
    return parts

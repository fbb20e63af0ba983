"""A part of attacks: a right answer, which attacks only where there are many ranks."""

import torch
import torch.distributed as dist


def right(x):
    """The parts of all ranks, by a ring."""
    n, rank = dist.get_world_size(), dist.get_rank()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for k in range(n - 1):
        sent = dist.isend(parts[(rank - k) % n], (rank + 1) % n)
        dist.recv(parts[(rank - k - 1) % n], (rank - 1) % n)
        sent.wait()
    return parts

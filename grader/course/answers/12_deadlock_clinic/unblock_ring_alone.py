"""A rank that is alone is its own neighbour on both sides, and no rank can send to itself: with
one rank, return a copy of x."""
# exercise: unblock_ring
# diagnosis: exception
import torch
import torch.distributed as dist


def unblock_ring(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank + 1) % n)
    dist.recv(y, (rank - 1) % n)
    request.wait()
    return y

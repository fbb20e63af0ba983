"""Every entry of your list is your own x, but entry j should be what came from rank j. Are the
entries n different tensors? [buffer] * n is one tensor n times.
"""
# exercise: all_gather, ring_all_gather
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for k in range(1, n):
        came = torch.empty_like(x)
        request = dist.isend(x, (rank + k) % n)
        dist.recv(came, (rank - k) % n)
        request.wait()
    return parts


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    going = x
    for _ in range(n - 1):
        came = torch.empty_like(x)
        request = dist.isend(going, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        going = came
    return parts

"""The shift goes the other way: you return the x of rank r + k, not of r − k. Your x travels to
rank + k.
"""
# exercise: shift
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, (rank - k) % n)
    dist.recv(y, (rank + k) % n)
    request.wait()
    return y

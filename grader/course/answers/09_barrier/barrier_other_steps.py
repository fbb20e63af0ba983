"""A step comes to n, so that a rank sends to itself, which is refused. The steps are the powers of two
below n, from 1 on: 1, 2, 4, …
"""
# exercise: barrier
# diagnosis: exception
# or: STEPS = "1, 3, 5"
import torch
import torch.distributed as dist

STEPS = "2, 4, 8"


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    for k in range((n - 1).bit_length()):
        step = 2 ** (k + 1) if STEPS == "2, 4, 8" else 2 * k + 1
        request = dist.isend(torch.zeros(1), (rank + step) % n)
        dist.recv(torch.zeros(1), (rank - step) % n)
        request.wait()

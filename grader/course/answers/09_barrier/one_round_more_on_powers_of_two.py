"""It is one round too many where n is a power of two: after k rounds a rank knows of 2**k ranks, and
so the last step is below n. (n − 1).bit_length() rounds are enough.
"""
# exercise: barrier
# diagnosis: too_many_rounds
# says: the point of this exercise
# earns: 0.5
# or: LAST = 0
import torch
import torch.distributed as dist

LAST = 1


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    for k in range(n.bit_length() if n > 1 else 0):
        step = 2**k % n or (LAST if LAST else n // 2)
        request = dist.isend(torch.zeros(1), (rank + step) % n)
        dist.recv(torch.zeros(1), (rank - step) % n)
        request.wait()

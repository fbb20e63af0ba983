"""What comes from rank src is put into the place of rank dst, to which you send in the same step.
Entry j belongs to the rank that it comes from: dist.recv(parts[src], src).
"""
# exercise: all_gather
# diagnosis: wrong_value
# alike: messages
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for k in range(1, n):
        request = dist.isend(x, (rank + k) % n)
        dist.recv(parts[(rank + k) % n], (rank - k) % n)
        request.wait()
    return parts

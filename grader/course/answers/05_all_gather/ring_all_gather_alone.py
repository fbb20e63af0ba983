"""A rank cannot send to itself, and a single rank has no other to send to: n ranks take n − 1
rounds, so one rank takes none. Is your loop one round too long?"""
# exercise: ring_all_gather
# diagnosis: exception
# With one rank the last round goes to itself.
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for s in range(n):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(parts[(rank - s - 1) % n], (rank - 1) % n)
        request.wait()
    return parts

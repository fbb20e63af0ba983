"""Your pieces are in the order in which they arrived: your own, then your left neighbour's, and so
on. What comes in round s = 1 … n − 1 is the piece of rank (rank − s) % n, so that is the entry to put
it into.
"""
# exercise: ring_all_gather
# diagnosis: wrong_value
# alike: messages
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone()]
    for _ in range(n - 1):
        part = torch.empty_like(x)
        request = dist.isend(parts[-1], (rank + 1) % n)
        dist.recv(part, (rank - 1) % n)
        request.wait()
        parts.append(part)
    return parts

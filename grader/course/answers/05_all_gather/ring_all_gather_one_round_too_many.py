"""One round too many: after n − 1 rounds every rank has everything."""
# exercise: ring_all_gather
# diagnosis: too_many_messages
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return [x.clone()]
    parts = [x.clone() for _ in range(n)]
    for s in range(n):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(parts[(rank - s - 1) % n], (rank - 1) % n)
        request.wait()
    return parts

"""Your left neighbour's x is in every place but your own: every rank sent its own x again and
again. From the second round on, send what came in the round before."""
# exercise: ring_all_gather
# diagnosis: wrong_value
# alike: messages
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for s in range(1, n):
        request = dist.isend(x, (rank + 1) % n)
        dist.recv(parts[(rank - s) % n], (rank - 1) % n)
        request.wait()
    return parts

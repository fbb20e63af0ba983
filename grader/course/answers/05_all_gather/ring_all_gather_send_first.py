# exercise: ring_all_gather
# diagnosis: deadlock
# hint: All ranks are in a send
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for s in range(n - 1):
        dist.send(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(parts[(rank - s - 1) % n], (rank - 1) % n)
    return parts

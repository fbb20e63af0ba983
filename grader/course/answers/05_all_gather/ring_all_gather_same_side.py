# exercise: ring_all_gather
# diagnosis: deadlock
# hint: what comes is from rank − k
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    right = (rank + 1) % n
    parts = [x.clone() for _ in range(n)]
    for s in range(n - 1):
        request = dist.isend(parts[(rank - s) % n], right)
        dist.recv(parts[(rank - s - 1) % n], right)
        request.wait()
    return parts

# exercise: all_gather, ring_all_gather
# diagnosis: wrong_value
# hint: but not all in their places
# or: PLACES = "to the left"
import torch
import torch.distributed as dist

PLACES = "backwards"


def placed(parts):
    return parts[::-1] if PLACES == "backwards" else [parts[-j] for j in range(len(parts))]


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for k in range(1, n):
        request = dist.isend(x, (rank + k) % n)
        dist.recv(parts[(rank - k) % n], (rank - k) % n)
        request.wait()
    return placed(parts)


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for s in range(n - 1):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(parts[(rank - s - 1) % n], (rank - 1) % n)
        request.wait()
    return placed(parts)

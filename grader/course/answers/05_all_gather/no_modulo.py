"""That rank does not exist: the ranks are 0 to n − 1, and to the right of the last is rank 0. Take
the number modulo the world size, as in (rank + 1) % n.
"""
# exercise: all_gather, ring_all_gather
# diagnosis: exception
# or: TO = "in a ring"
# or: SOURCE = "in a ring"
import torch
import torch.distributed as dist

TO = "on a line"
SOURCE = "on a line"


def place(number, where):
    return number % dist.get_world_size() if where == "in a ring" else number


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for k in range(1, n):
        request = dist.isend(x, place(rank + k, TO))
        dist.recv(parts[(rank - k) % n], place(rank - k, SOURCE))
        request.wait()
    return parts


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for s in range(n - 1):
        request = dist.isend(parts[(rank - s) % n], place(rank + 1, TO))
        dist.recv(parts[(rank - s - 1) % n], place(rank - 1, SOURCE))
        request.wait()
    return parts

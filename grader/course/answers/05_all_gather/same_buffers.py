"""Your list holds the same one or two buffers again and again, so each later piece has overwritten
an earlier one. Keep a copy of each piece, or use a new tensor for it.
"""
# exercise: all_gather, ring_all_gather
# diagnosis: wrong_value
# or: BUFFERS = 2
import torch
import torch.distributed as dist

BUFFERS = 1


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    sends = [dist.isend(x, r) for r in range(n) if r != rank]
    buffers = [torch.empty_like(x) for _ in range(BUFFERS)]
    parts = [x.clone() for _ in range(n)]
    for r in range(n):
        if r != rank:
            parts[r] = buffers[r % BUFFERS]
            dist.recv(parts[r], r)
    for send in sends:
        send.wait()
    return parts


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    buffers = [torch.empty_like(x) for _ in range(BUFFERS)]
    parts = [x.clone() for _ in range(n)]
    going = x
    for s in range(1, n):
        came = buffers[s % BUFFERS]
        request = dist.isend(going.clone(), (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        parts[(rank - s) % n] = came
        going = came
    return parts

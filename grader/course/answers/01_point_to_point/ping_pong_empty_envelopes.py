# exercise: ping_pong
# diagnosis: wrong_value
# hint: it has not come that way
# says: rank 0: element
# or: ADDED = True
# Both messages have the right size; the first carries zeros, or x + 1 already.
import torch
import torch.distributed as dist

ADDED = False


def ping_pong(x):
    rank = dist.get_rank()
    y = torch.zeros_like(x)
    if rank == 0:
        dist.send(x + 1 if ADDED else y, 1)
        dist.recv(y, 1)
        return x + 1
    if rank == 1:
        dist.recv(y, 0)
        dist.send(y, 0)
    return x.clone()

# exercise: shift
# diagnosis: deadlock
# hint: all wait in a send
# earns: 0.25
# Even ranks send first, and a shift by 2 goes from even ranks to even ones.
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    if rank % 2 == 0:
        dist.send(x, (rank + k) % n)
        dist.recv(y, (rank - k) % n)
    else:
        dist.recv(y, (rank - k) % n)
        dist.send(x, (rank + k) % n)
    return y

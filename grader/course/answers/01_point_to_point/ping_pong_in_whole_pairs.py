"""Ranks 2 and 3 play as well. Only ranks 0 and 1 do: on all others nothing is sent, and a copy of x
returned."""
# exercise: ping_pong
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def ping_pong(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    y = x.clone()
    if rank % 2 == 0 and rank + 1 < n:
        dist.send(x, rank + 1)
        dist.recv(y, rank + 1)
    elif rank % 2 == 1:
        dist.recv(y, rank - 1)
        dist.send(y + 1, rank - 1)
        y = x.clone()
    return y

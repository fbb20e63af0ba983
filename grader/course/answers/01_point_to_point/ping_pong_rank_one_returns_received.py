"""Rank 1 returns what it had received; it should return a copy of its own x."""
# exercise: ping_pong
# diagnosis: wrong_value
# alike: arguments
import torch
import torch.distributed as dist


def ping_pong(x):
    y = torch.empty_like(x)
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.recv(y, 1)
        return y
    if dist.get_rank() == 1:
        dist.recv(y, 0)
        dist.send(y + 1, 0)
        return y
    return x.clone()

"""Rank 1 sent back its own x plus 1, not what it had received plus 1."""
# exercise: ping_pong
# diagnosis: wrong_value
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
        dist.send(x + 1, 0)
    return x.clone()

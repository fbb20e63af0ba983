"""Rank 1 receives into x, and so loses its own numbers. Receive into another tensor,
torch.empty_like(x), and return a copy of x.
"""
# exercise: ping_pong
# diagnosis: wrong_value
# alike: arguments
# or: ADDS = "in x"
import torch
import torch.distributed as dist

ADDS = "beside x"


def ping_pong(x):
    if dist.get_rank() == 0:
        y = torch.empty_like(x)
        dist.send(x, 1)
        dist.recv(y, 1)
        return y
    if dist.get_rank() == 1:
        dist.recv(x, 0)
        if ADDS == "in x":
            x += 1
            dist.send(x, 0)
        else:
            dist.send(x + 1, 0)
    return x.clone()

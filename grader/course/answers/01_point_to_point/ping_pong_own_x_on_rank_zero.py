"""Rank 0 ends with x as it was, although messages were exchanged. Does rank 1 send what it
received plus 1, and does rank 0 return what comes back?
"""
# exercise: ping_pong
# diagnosis: wrong_value
# not: No message
# or: ADDED = 1; RETURNED = "its own"
import torch
import torch.distributed as dist

ADDED = 0
RETURNED = "what comes back"


def ping_pong(x):
    y = torch.empty_like(x)
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.recv(y, 1)
        if RETURNED == "what comes back":
            return y
    if dist.get_rank() == 1:
        dist.recv(y, 0)
        dist.send(y + ADDED, 0)
    return x.clone()

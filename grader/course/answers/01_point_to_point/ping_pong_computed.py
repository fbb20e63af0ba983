# exercise: ping_pong
# diagnosis: wrong_value
# hint: it has not come that way
# says: rank 1: element [0] of the message should be
# or: ENVELOPE = "x"
# Rank 0 adds the 1 itself; what comes back is whatever was at hand.
import torch
import torch.distributed as dist

ENVELOPE = "y"


def ping_pong(x):
    rank = dist.get_rank()
    y = torch.zeros_like(x)
    if rank == 0:
        dist.send(x, 1)
        dist.recv(y, 1)
        return x + 1
    if rank == 1:
        dist.recv(y, 0)
        dist.send(x if ENVELOPE == "x" else y, 0)
    return x.clone()

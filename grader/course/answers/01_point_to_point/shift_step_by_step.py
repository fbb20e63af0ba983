"""x is passed on from neighbour to neighbour. One message per rank is enough, straight to its
destination: rank + k.
"""
# exercise: shift
# diagnosis: too_many_messages
# alike: messages
# earns: 0.5
# or: STEPS = "abs(k)"
import torch
import torch.distributed as dist

STEPS = "k % n"


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    steps, side = (k % n, 1) if STEPS == "k % n" else (abs(k), 1 if k > 0 else -1)
    out = x.clone()
    for _ in range(steps if n > 1 else 0):
        y = torch.empty_like(x)
        request = dist.isend(out, (rank + side) % n)
        dist.recv(y, (rank - side) % n)
        request.wait()
        out = y
    return out

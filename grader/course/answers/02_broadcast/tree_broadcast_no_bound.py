"""It is right where the number of ranks is a power of two. Elsewhere the last round is not full, and
some ranks have no partner in it: rank v sends only if there is a rank v + step, so only if v + step
< n.
"""
# exercise: tree_broadcast
# diagnosis: deadlock
import torch
import torch.distributed as dist


def tree_broadcast(x, src):
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n
    step = 1
    while step < n:
        if v < step:
            dist.send(x, (v + step + src) % n)
        elif v < 2 * step:
            dist.recv(x, (v - step + src) % n)
        step *= 2

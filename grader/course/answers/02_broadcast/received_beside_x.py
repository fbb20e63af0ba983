"""x is as it was on every rank, although messages were exchanged: receive into x itself, or write
into it with x.copy_(...). A line such as x = y would only give the name x to another tensor, which
the caller never sees.
"""
# exercise: broadcast, tree_broadcast
# diagnosis: wrong_value
# not: Nothing was sent
import torch
import torch.distributed as dist


def broadcast(x, src):
    if dist.get_rank() == src:
        for dst in range(dist.get_world_size()):
            if dst != src:
                dist.send(x, dst)
    else:
        y = torch.empty_like(x)
        dist.recv(y, src)
        x = y


def tree_broadcast(x, src):
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n
    step = 1
    while step < n:
        if v < step and v + step < n:
            dist.send(x, (v + step + src) % n)
        elif step <= v < 2 * step:
            x = torch.empty_like(x)
            dist.recv(x, (v - step + src) % n)
        step *= 2

"""rank ^ src is a number below n for every rank only if n is a power of two. Elsewhere some sources
give places past the last rank, or leave ranks out. Count ranks from src with (rank − src) % n, and
back with (v + src) % n.
"""
# exercise: tree_broadcast
# diagnosis: deadlock
import torch.distributed as dist


def tree_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    v, step = rank ^ src, 1
    while step < n:
        if v < step:
            child = (v + step) ^ src
            if child < n and v + step < n:
                dist.send(x, child)
        elif v < 2 * step:
            dist.recv(x, (v - step) ^ src)
        step *= 2

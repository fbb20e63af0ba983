"""Where src is not rank 0, some peers are past the last rank. The count goes on at rank 0 there: a
peer is (rank + step) % n or (rank − step) % n.
"""
# exercise: tree_broadcast
# diagnosis: exception
import torch.distributed as dist


def tree_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    v, step = (rank - src) % n, 1
    while step < n:
        if v < step:
            if v + step < n:
                dist.send(x, rank + step)
        elif v < 2 * step:
            dist.recv(x, rank - step)
        step *= 2

"""A place in the tree, counted from src, is negative for the ranks before it: rank − src. Take it
modulo n, (rank − src) % n, and (v + src) % n for the way back."""
# exercise: tree_broadcast
# diagnosis: exception
import torch.distributed as dist


def tree_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    v, step = rank - src, 1
    while step < n:
        if v < step and v + step < n:
            dist.send(x, v + step + src)
        elif step <= v < 2 * step:
            dist.recv(x, v - step + src)
        step *= 2

"""A place in the tree becomes a rank again without the modulo: v + src goes up to 2n − 2, and the
ranks end at n − 1. Take (v + src) % n."""
# exercise: tree_broadcast
# diagnosis: exception
import torch.distributed as dist


def tree_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    v, step = (rank - src) % n, 1
    while step < n:
        if v < step and v + step < n:
            dist.send(x, v + step + src)
        elif step <= v < 2 * step:
            dist.recv(x, v - step + src)
        step *= 2

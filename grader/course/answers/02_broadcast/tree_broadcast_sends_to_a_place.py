"""It fails only where src is not rank 0. v counts from src, and so v + step is a place in the tree
and not a rank: send to rank (v + step + src) % n, as you do where you receive."""
# exercise: tree_broadcast
# diagnosis: exception
import torch.distributed as dist


def tree_broadcast(x, src):
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n
    step = 1
    while step < n:
        if v < step and v + step < n:
            dist.send(x, v + step)
        elif step <= v < 2 * step:
            dist.recv(x, (v - step + src) % n)
        step *= 2

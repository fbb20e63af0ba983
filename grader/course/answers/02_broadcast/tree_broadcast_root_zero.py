"""Every rank ends with rank 0's x. The root of the tree is src: count the ranks from it, v = (rank
− src) % n."""
# exercise: tree_broadcast
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def tree_broadcast(x, src):
    n, v = dist.get_world_size(), dist.get_rank()
    step = 1
    while step < n:
        if v < step and v + step < n:
            dist.send(x, v + step)
        elif step <= v < 2 * step:
            dist.recv(x, v - step)
        step *= 2

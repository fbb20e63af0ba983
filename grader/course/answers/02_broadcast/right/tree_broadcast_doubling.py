# exercise: tree_broadcast
# diagnosis: none
import torch
import torch.distributed as dist


def tree_broadcast(x, src):
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n
    step = 1
    while step < n:
        if v < step and v + step < n:
            dist.send(x, (v + step + src) % n)
        elif step <= v < 2 * step:
            dist.recv(x, (v - step + src) % n)
        step *= 2

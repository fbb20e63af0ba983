# exercise: tree_broadcast
# diagnosis: deadlock
# hint: only if v + step < n
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

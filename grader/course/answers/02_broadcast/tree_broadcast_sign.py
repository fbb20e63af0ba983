# exercise: tree_broadcast
# diagnosis: deadlock
# earns: 0.25
# hint: not (rank + src)
import torch
import torch.distributed as dist


def tree_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    v = (rank + src) % n
    step = 1
    while step < n:
        if v < step:
            if v + step < n:
                dist.send(x, (v + step + src) % n)
        elif v < 2 * step:
            dist.recv(x, (v - step + src) % n)
        step *= 2

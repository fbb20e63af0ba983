# exercise: tree_broadcast
# diagnosis: too_many_messages
# hint: although it has it already
import torch
import torch.distributed as dist


def tree_broadcast(x, src):
    n = dist.get_world_size()
    v = (dist.get_rank() - src) % n
    step = 1
    while step < n:
        # in the last round everybody has it, and gets it again
        if v < step:
            if v + step < n:
                dist.send(x, (v + step + src) % n)
        elif v < 2 * step:
            dist.recv(x, (v - step + src) % n)
        step *= 2
    if n > 1 and v == 0:
        dist.send(x, (1 + src) % n)
    elif v == 1:
        dist.recv(x, src)

# exercise: tree_broadcast
# diagnosis: exception
# hint: A place in the tree becomes a
# Forgets the modulo on the way back
import torch.distributed as dist


def tree_broadcast(x, src):
    n, r = dist.get_world_size(), dist.get_rank()
    v = (r - src) % n
    step = 1
    while step < n:
        if v < step and v + step < n:
            dist.send(x, v + step + src)
        elif step <= v < 2 * step:
            dist.recv(x, v - step + src)
        step *= 2

# exercise: scatter_all_gather_broadcast
# diagnosis: too_many_bytes
# hint: the whole of x
# earns: 0.5
import torch
import torch.distributed as dist


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    v = (rank - src) % n
    step = 1
    while step < n:
        if v < step and v + step < n:
            dist.send(x, (v + step + src) % n)
        elif step <= v < 2 * step:
            dist.recv(x, (v - step + src) % n)
        step *= 2

# exercise: scatter_all_gather_broadcast
# diagnosis: too_many_bytes
# hint: the whole of x
# earns: 0.5
import torch
import torch.distributed as dist


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == src:
        for other in range(n):
            if other != src:
                dist.send(x, other)
    else:
        dist.recv(x, src)

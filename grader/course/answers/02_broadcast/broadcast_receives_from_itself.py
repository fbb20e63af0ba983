# exercise: broadcast
# diagnosis: exception
# hint: receives from itself
# not: src sends
import torch.distributed as dist


def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == src:
        for dst in range(n):
            if dst != src:
                dist.send(x, dst)
    dist.recv(x, src)

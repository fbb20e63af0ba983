# exercise: broadcast
# diagnosis: deadlock
# hint: before it has received anything
# not: range(1, n) | wrong rank
import torch.distributed as dist


def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == src:
        for dst in range(n):
            if dst != src:
                dist.send(x, dst)
    else:
        dist.send(x, src)
        dist.recv(x, src)

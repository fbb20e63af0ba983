# exercise: broadcast
# diagnosis: deadlock
# hint: Every send needs its receive
# says: It also fails on 1 rank
# not: loop
import torch.distributed as dist


def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != src:
        dist.recv(x, (rank - 1) % n)
    dist.send(x, (rank + 1) % n)

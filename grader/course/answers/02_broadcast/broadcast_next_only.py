"""Only the rank after src got it. On a chain, each rank that has received passes it on; without
one, src sends to all the others."""
# exercise: broadcast
# diagnosis: wrong_value
import torch.distributed as dist


def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if n > 1 and rank == src:
        dist.send(x, (src + 1) % n)
    elif n > 1 and rank == (src + 1) % n:
        dist.recv(x, src)

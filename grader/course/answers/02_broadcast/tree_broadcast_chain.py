"""That is a chain: each rank passes x on once, and only one message travels at a time. A rank that
has x should send in every round that follows, each time to another rank."""
# exercise: tree_broadcast
# diagnosis: too_many_rounds
# earns: 0.5
# or: NEXT = -1
import torch.distributed as dist

NEXT = 1


def tree_broadcast(x, src):
    n = dist.get_world_size()
    rank = dist.get_rank()
    if rank != src:
        dist.recv(x, (rank - NEXT) % n)
    if (rank + NEXT) % n != src:
        dist.send(x, (rank + NEXT) % n)

"""The chain ends at rank n − 1, and the ranks before src wait for a message that nobody sends. From
the last rank it has to go on with rank 0: count modulo n, and stop at the rank just before src.
"""
# exercise: broadcast
# diagnosis: deadlock
import torch.distributed as dist


def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != src:
        dist.recv(x, (rank - 1) % n)
    if rank < n - 1:
        dist.send(x, rank + 1)

"""The rank after src is right, and each one behind it has what the rank before it began with: a rank
passes x on before it has received. Receive first, and then send.
"""
# exercise: broadcast
# diagnosis: wrong_value
# alike: messages
import torch.distributed as dist


def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % n, (rank - 1) % n
    request = dist.isend(x.clone(), right) if right != src else None
    if rank != src:
        dist.recv(x, left)
    if request is not None:
        request.wait()

# exercise: broadcast
# diagnosis: none
import torch.distributed as dist


def broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    if rank != src:
        dist.recv(x, left)
    if right != src:
        dist.send(x, right)

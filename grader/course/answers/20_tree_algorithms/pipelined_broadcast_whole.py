# exercise: pipelined_broadcast
# diagnosis: too_few_messages
# hint: one for each piece
import torch
import torch.distributed as dist


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    if place > 0:
        dist.recv(x, (rank - 1) % n)
    if place < n - 1:
        dist.send(x, (rank + 1) % n)

# exercise: ping_pong
# diagnosis: exception
# hint: The tensor comes first
import torch
import torch.distributed as dist


def ping_pong(x):
    rank = dist.get_rank()
    if rank == 0:
        dist.send(1, x)
        y = dist.recv(1)
        return y
    if rank == 1:
        y = dist.recv(0)
        dist.send(0, y + 1)
    return x.clone()

# exercise: ping_pong
# diagnosis: none
import torch
import torch.distributed as dist


def ping_pong(x):
    rank = dist.get_rank()
    y = x.clone()
    if rank == 0:
        dist.send(x, 1)
        dist.recv(y, 1)
    elif rank == 1:
        ball = torch.empty_like(x)
        dist.recv(ball, 0)
        dist.send(ball + 1, 0)
    return y

"""Every pair of ranks plays here, and with an odd number of ranks the last one has no partner. Only
ranks 0 and 1 play: on all others nothing is sent, and a copy of x returned.
"""
# exercise: ping_pong
# diagnosis: exception
import torch
import torch.distributed as dist


def ping_pong(x):
    rank = dist.get_rank()
    ball = torch.empty_like(x)
    if rank % 2 == 0:
        dist.send(x, rank ^ 1)
        dist.recv(ball, rank ^ 1)
        return ball
    dist.recv(ball, rank ^ 1)
    dist.send(ball + 1, rank ^ 1)
    return x.clone()

"""Ranks 2 and up reach the end without a return, and so give None. They do not play, but return a
copy of x all the same."""
# exercise: ping_pong
# diagnosis: wrong_type
import torch
import torch.distributed as dist


def ping_pong(x):
    rank = dist.get_rank()
    ball = torch.empty_like(x)
    if rank == 0:
        dist.send(x, 1)
        dist.recv(ball, 1)
        return ball
    if rank == 1:
        dist.recv(ball, 0)
        dist.send(ball + 1, 0)
        return x.clone()

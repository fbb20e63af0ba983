"""The token goes round once, so that rank 0 alone knows that all have come: the others leave before
they have heard of the ranks behind them. Here every rank sends and receives in every round, and in
round k its message goes 2**k ranks to the right.
"""
# exercise: barrier
# diagnosis: not_synchronized
# alike: messages
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    token = torch.zeros(1)
    if rank == 0:
        dist.send(token, 1)
        dist.recv(token, n - 1)
    else:
        dist.recv(token, rank - 1)
        dist.send(token, (rank + 1) % n)

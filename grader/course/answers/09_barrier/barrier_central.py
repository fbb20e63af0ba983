# exercise: barrier
# diagnosis: too_many_rounds
# hint: none is in the middle
# earns: 0.5
# not: power of two | (rank ^ step)
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    token = torch.zeros(1)
    if rank == 0:
        for other in range(1, n):
            dist.recv(token, other)
        for other in range(1, n):
            dist.send(token, other)
    else:
        dist.send(token, 0)
        dist.recv(token, 0)

# exercise: ring_all_reduce
# diagnosis: wrong_value
# hint: -
# not: power of two | not finished | off by one
# Rank 0 hears all of the ranks, and answers with what it had itself.
import torch
import torch.distributed as dist


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(x, 0)
        dist.recv(x, 0)
        return
    came = torch.empty_like(x)
    for other in range(1, n):
        dist.recv(came, other)
    for other in range(1, n):
        dist.send(x, other)

# exercise: barrier
# diagnosis: none
# A receive from any rank is right where the tag names the round: only one rank sends it.
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    tag, step = 0, 1
    while step < n:
        request = dist.isend(torch.zeros(2), (rank + step) % n, tag=tag)
        dist.recv(torch.zeros(2), tag=tag)
        request.wait()
        tag, step = tag + 1, step * 2

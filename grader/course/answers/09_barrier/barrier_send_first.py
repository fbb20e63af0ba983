# exercise: barrier
# diagnosis: deadlock
# hint: start the send with isend
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        dist.send(torch.zeros(1), (rank + step) % n)
        dist.recv(torch.zeros(1), (rank - step) % n)
        step *= 2

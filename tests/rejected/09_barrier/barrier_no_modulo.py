# exercise: barrier
# diagnosis: exception
# hint: taken modulo n
# not: itself
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        request = dist.isend(torch.zeros(1), rank + step)
        dist.recv(torch.zeros(1), rank - step)
        request.wait()
        step *= 2

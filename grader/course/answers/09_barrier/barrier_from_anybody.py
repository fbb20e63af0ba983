# exercise: barrier
# diagnosis: not_synchronized
# hint: Name the source
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        request = dist.isend(torch.zeros(1), (rank + step) % n)
        dist.recv(torch.zeros(1))
        request.wait()
        step *= 2

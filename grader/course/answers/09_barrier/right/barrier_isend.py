# exercise: barrier
# diagnosis: none
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    token, heard = torch.zeros(1), torch.zeros(1)
    step = 1
    while step < n:
        request = dist.isend(token, (rank + step) % n)
        dist.recv(heard, (rank - step) % n)
        request.wait()
        step *= 2

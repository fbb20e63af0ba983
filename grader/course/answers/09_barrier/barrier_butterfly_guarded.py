# exercise: barrier
# diagnosis: not_synchronized
# hint: only if n is a power of two
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        partner = rank ^ step
        if partner < n:
            request = dist.isend(torch.zeros(1), partner)
            dist.recv(torch.zeros(1), partner)
            request.wait()
        step *= 2

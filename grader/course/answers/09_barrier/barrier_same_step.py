# exercise: barrier
# diagnosis: not_synchronized
# hint: the step has to double
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    for _ in range((n - 1).bit_length()):
        request = dist.isend(torch.zeros(1), (rank + 1) % n)
        dist.recv(torch.zeros(1), (rank - 1) % n)
        request.wait()

# exercise: shift
# diagnosis: exception
# hint: There is no buffr. Did you mean buffer?
# not: k % n is 0 | modulo
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    buffer = x.clone()
    if k % n == 0:
        return buffer
    request = dist.isend(x, (rank + k) % n)
    dist.recv(buffr, (rank - k) % n)
    request.wait()
    return buffer

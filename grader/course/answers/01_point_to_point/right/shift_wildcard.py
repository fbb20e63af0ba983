# exercise: shift
# diagnosis: none
# Only one message can come, so a receive from anybody is right here.
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    sending, receiving = dist.isend(x, (rank + k) % n), dist.irecv(y)
    receiving.wait()
    sending.wait()
    return y

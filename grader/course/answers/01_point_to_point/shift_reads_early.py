# exercise: shift
# diagnosis: wrong_value
# hint: until wait() has returned
# not: other way | your own x
# Copies the buffer before the receive is complete.
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0:
        return x.clone()
    y = torch.zeros_like(x)
    receiving = dist.irecv(y, (rank - k) % n)
    sending = dist.isend(x, (rank + k) % n)
    sending.wait()
    out = y.clone()
    receiving.wait()
    return out

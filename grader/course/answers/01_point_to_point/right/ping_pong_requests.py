# exercise: ping_pong
# diagnosis: none
import torch
import torch.distributed as dist


def ping_pong(x):
    rank = dist.get_rank()
    if rank > 1:
        return x.clone()
    y = torch.empty_like(x)
    back = dist.irecv(y, 1 - rank)
    if rank == 0:
        dist.isend(x, 1).wait()
        back.wait()
        return y
    back.wait()
    y.add_(1)
    there = dist.isend(y, 0)
    there.wait()
    return x.clone()

# exercise: ping_pong
# diagnosis: deadlock
# hint: Both ranks send first
# says: rank 0 waits to send to rank 1
import torch
import torch.distributed as dist


def ping_pong(x):
    rank = dist.get_rank()
    y = torch.empty_like(x)
    if rank < 2:
        dist.send(x, 1 - rank)
        dist.recv(y, 1 - rank)
        return y if rank == 0 else x.clone()
    return x.clone()

# exercise: ping_pong
# diagnosis: deadlock
# hint: Ranks 2 and up have no part
# says: rank 2 waits to receive from rank 0
# not: take turns | send first
import torch
import torch.distributed as dist


def ping_pong(x):
    y = torch.empty_like(x)
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.recv(y, 1)
        return y
    dist.recv(y, 0)
    dist.send(y + 1, 0)
    return x.clone()

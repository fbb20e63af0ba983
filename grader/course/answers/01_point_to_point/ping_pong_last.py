# exercise: ping_pong
# diagnosis: wrong_peer
# hint: Only ranks 0 and 1 play
# Pings the last rank
import torch
import torch.distributed as dist


def ping_pong(x):
    r, n = dist.get_rank(), dist.get_world_size()
    y = torch.empty_like(x)
    if r == 0:
        dist.send(x, n - 1)
        dist.recv(y, n - 1)
        return y
    if r == n - 1:
        dist.recv(y, 0)
        dist.send(y + 1, 0)
    return x.clone()

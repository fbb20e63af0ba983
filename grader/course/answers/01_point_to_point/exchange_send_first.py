# exercise: exchange
# diagnosis: deadlock
# hint: is complete only when its receive
import torch
import torch.distributed as dist


def exchange(x, peer):
    if peer == dist.get_rank():
        return x.clone()
    y = torch.empty_like(x)
    dist.send(x, peer)
    dist.recv(y, peer)
    return y

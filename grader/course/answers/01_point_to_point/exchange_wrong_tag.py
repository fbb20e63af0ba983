# exercise: exchange
# diagnosis: deadlock
# hint: its own tag
# not: both sides send | in a send
# says: with tag
import torch
import torch.distributed as dist


def exchange(x, peer):
    rank = dist.get_rank()
    if peer == rank:
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, peer, tag=rank)
    dist.recv(y, peer, tag=rank)
    request.wait()
    return y

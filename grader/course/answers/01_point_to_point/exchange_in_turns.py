# exercise: exchange
# diagnosis: too_many_rounds
# hint: both at
# earns: 0.5
# Right, but one direction stands idle.
import torch
import torch.distributed as dist


def exchange(x, peer):
    rank = dist.get_rank()
    if peer == rank:
        return x.clone()
    y = torch.empty_like(x)
    if rank < peer:
        dist.send(x, peer)
        dist.recv(y, peer)
    else:
        dist.recv(y, peer)
        dist.send(x, peer)
    return y

"""You pair ranks 0 and 1, 2 and 3, and so on, in every case. Who the other side is stands in peer:
send to peer, and receive from peer."""
# exercise: exchange
# diagnosis: deadlock
import torch
import torch.distributed as dist


def exchange(x, peer):
    rank = dist.get_rank()
    if peer == rank:
        return x.clone()
    other, y = rank ^ 1, torch.empty_like(x)
    request = dist.isend(x, other)
    dist.recv(y, other)
    request.wait()
    return y

# exercise: exchange
# diagnosis: exception
# hint: no other rank to talk to
import torch
import torch.distributed as dist


def exchange(x, peer):
    y = torch.empty_like(x)
    request = dist.isend(x, peer)
    dist.recv(y, peer)
    request.wait()
    return y

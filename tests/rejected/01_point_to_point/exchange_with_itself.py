# exercise: exchange
# diagnosis: exception
# hint: nobody to talk to
import torch
import torch.distributed as dist


def exchange(x, peer):
    y = torch.empty_like(x)
    request = dist.isend(x, peer)
    dist.recv(y, peer)
    request.wait()
    return y

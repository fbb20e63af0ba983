"""When peer is your own rank there is no other rank to talk to: return a copy of x."""
# exercise: exchange
# diagnosis: exception
import torch
import torch.distributed as dist


def exchange(x, peer):
    y = torch.empty_like(x)
    request = dist.isend(x, peer)
    dist.recv(y, peer)
    request.wait()
    return y

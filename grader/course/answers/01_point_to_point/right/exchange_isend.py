# exercise: exchange
# diagnosis: none
import torch
import torch.distributed as dist


def exchange(x, peer):
    if peer == dist.get_rank():
        return x.clone()
    y = torch.empty_like(x)
    request = dist.isend(x, peer)
    dist.recv(y, peer)
    request.wait()
    return y

"""You return your own x: return what you have received."""
# exercise: exchange
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def exchange(x, peer):
    if peer != dist.get_rank():
        y = torch.empty_like(x)
        request = dist.isend(x, peer)
        dist.recv(y, peer)
        request.wait()
    return x.clone()

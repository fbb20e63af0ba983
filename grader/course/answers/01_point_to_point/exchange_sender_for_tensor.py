# exercise: exchange
# diagnosis: wrong_type
# hint: returns the rank of the sender, which is now called y
import torch
import torch.distributed as dist


def exchange(x, peer):
    y = x.clone()
    if peer == dist.get_rank(): return y
    req = dist.isend(x, peer)
    y = dist.recv(y, peer)
    req.wait()
    return y

# exercise: exchange
# diagnosis: exception
# hint: fills a tensor that you give it
import torch
import torch.distributed as dist


def exchange(x, peer):
    if peer == dist.get_rank(): return x.clone()
    req = dist.isend(x, peer)
    y = dist.recv(peer)
    req.wait()
    return y

# exercise: exchange
# diagnosis: none
# Asks instead of waiting; other work could be done meanwhile.
import torch
import torch.distributed as dist


def exchange(x, peer):
    if dist.get_rank() == peer:
        return x.detach().clone()
    y = torch.empty_like(x)
    open_requests = [dist.irecv(y, peer), dist.isend(x, peer)]
    while open_requests:
        open_requests = [r for r in open_requests if not r.is_completed()]
    return y

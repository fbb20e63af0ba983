# exercise: shift
# diagnosis: unwaited_request
# hint: req.wait()
import torch
import torch.distributed as dist


def shift(x, k):
    r, n = dist.get_rank(), dist.get_world_size()
    if k % n == 0: return x.clone()
    y = torch.empty_like(x)
    req = dist.isend(x, (r + k) % n)
    dist.recv(y, (r - k) % n)
    req.wait
    return y

# exercise: shift
# diagnosis: wrong_value
# hint: as if k were positive
# Moves the wrong way only for negative k
import torch
import torch.distributed as dist


def shift(x, k):
    n, r = dist.get_world_size(), dist.get_rank()
    if k % n == 0:
        return x.clone()
    y = torch.empty_like(x)
    k = k % n if k > 0 else (-k) % n
    w = dist.isend(x, (r + k) % n)
    dist.recv(y, (r - k) % n)
    w.wait()
    return y

"""For a negative k the shift goes the other way, as if k were positive. Each rank returns the x of
rank (r − k) mod n there, too: send to (rank + k) % n and receive from (rank − k) % n, whatever the
sign of k."""
# exercise: shift
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def shift(x, k):
    n, r = dist.get_world_size(), dist.get_rank()
    k = abs(k) % n
    if k == 0:
        return x.clone()
    y = torch.empty_like(x)
    w = dist.isend(x, (r + k) % n)
    dist.recv(y, (r - k) % n)
    w.wait()
    return y

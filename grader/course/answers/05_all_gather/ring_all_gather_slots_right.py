# exercise: ring_all_gather
# diagnosis: wrong_value
# hint: The pieces go round to the right,
# Sends right, writes into (r + s)
import torch
import torch.distributed as dist


def ring_all_gather(x):
    n, r = dist.get_world_size(), dist.get_rank()
    out = [torch.empty_like(x) for i in range(n)]
    out[r].copy_(x)
    for s in range(1, n):
        w = dist.isend(out[(r + s - 1) % n], (r + 1) % n)
        dist.recv(out[(r + s) % n], (r - 1) % n)
        w.wait()
    return out

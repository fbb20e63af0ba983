# exercise: ring_all_gather
# diagnosis: wrong_value
# hint: The pieces go round to the right,
# Off by one in the place
import torch
import torch.distributed as dist


def ring_all_gather(x):
    n, r = dist.get_world_size(), dist.get_rank()
    out = [torch.empty_like(x) for i in range(n)]
    out[r].copy_(x)
    cur = x.clone()
    for s in range(1, n):
        nxt = torch.empty_like(x)
        w = dist.isend(cur, (r + 1) % n)
        dist.recv(nxt, (r - 1) % n)
        w.wait()
        out[(r + s) % n].copy_(nxt)
        cur = nxt
    return out

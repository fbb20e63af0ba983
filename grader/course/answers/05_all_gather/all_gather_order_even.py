# exercise: all_gather
# diagnosis: wrong_value
# hint: Your own x comes last, and the
# Swaps places of two equal... returns a list with own entry last
import torch
import torch.distributed as dist


def all_gather(x):
    n, r = dist.get_world_size(), dist.get_rank()
    out = {}
    ws = [dist.isend(x, i) for i in range(n) if i != r]
    for i in range(n):
        if i != r:
            out[i] = torch.empty_like(x)
            dist.recv(out[i], i)
    for w in ws:
        w.wait()
    out[r] = x.clone()
    return list(out.values())

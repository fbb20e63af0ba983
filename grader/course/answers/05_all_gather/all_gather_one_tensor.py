# exercise: all_gather
# diagnosis: wrong_value
# hint: one and the same tensor
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x)] * n
    sends = [dist.isend(x, r) for r in range(n) if r != rank]
    parts[rank].copy_(x)
    for r in range(n):
        if r != rank:
            dist.recv(parts[r], r)
    for send in sends:
        send.wait()
    return parts

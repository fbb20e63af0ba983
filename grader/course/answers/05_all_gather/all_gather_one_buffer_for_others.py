"""All entries but your own are one and the same tensor, which is filled again and again: [buffer] *
n is one tensor n times. Make a new one for every rank.
"""
# exercise: all_gather
# diagnosis: wrong_value
# or: ORDER = "of ranks"
import torch
import torch.distributed as dist

ORDER = "of distance"


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x)] * n
    parts[rank] = x.clone()
    sends = [dist.isend(x, (rank + k) % n) for k in range(1, n)]
    sources = [(rank - k) % n for k in range(1, n)]
    for source in sources if ORDER == "of distance" else sorted(sources):
        dist.recv(parts[source], source)
    for send in sends:
        send.wait()
    return parts

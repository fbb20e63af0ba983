# exercise: all_gather
# diagnosis: none
# Takes the messages as they come, and asks who it was.
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    found = {rank: x.clone()}
    sends = [dist.isend(x, (rank + k) % n) for k in range(1, n)]
    while len(found) < n:
        part = torch.empty_like(x)
        found[dist.recv(part)] = part
    for send in sends:
        send.wait()
    return [found[r] for r in range(n)]

# exercise: all_gather
# diagnosis: wrong_value
# hint: begins with your own x
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    sends = [dist.isend(x, r) for r in range(n) if r != rank]
    parts = [x.clone()]
    for r in range(n):
        if r != rank:
            parts.append(torch.empty_like(x))
            dist.recv(parts[-1], r)
    for send in sends:
        send.wait()
    return parts

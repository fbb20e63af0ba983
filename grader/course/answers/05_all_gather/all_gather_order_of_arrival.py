# exercise: all_gather
# diagnosis: wrong_value
# hint: order of arrival
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    sends = [dist.isend(x, r) for r in range(n) if r != rank]
    parts = [x.clone()]
    while len(parts) < n:
        part = torch.empty_like(x)
        dist.recv(part)
        parts.append(part)
    for send in sends:
        send.wait()
    return parts

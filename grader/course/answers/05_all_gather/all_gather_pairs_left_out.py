# exercise: all_gather
# diagnosis: wrong_value
# hint: ranks 1 and 2 never meet
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for step in range(1, n):
        partner = rank ^ step
        if partner < n:
            request = dist.isend(x, partner)
            dist.recv(parts[partner], partner)
            request.wait()
    return parts

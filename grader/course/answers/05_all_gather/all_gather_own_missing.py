# exercise: all_gather
# diagnosis: wrong_value
# hint: Your own x is not in your list
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.zeros_like(x) for _ in range(n)]
    others = [r for r in range(n) if r != rank]
    requests = [dist.isend(x, r) for r in others] + [dist.irecv(parts[r], r) for r in others]
    for request in requests:
        request.wait()
    if n == 1:
        parts[0].copy_(x)
    return parts

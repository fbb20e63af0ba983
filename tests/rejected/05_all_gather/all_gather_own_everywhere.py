# exercise: all_gather
# diagnosis: wrong_value
# hint: Every entry of your list is your own x
# not: one and the same tensor
# The pieces arrive, and are not put into the list.
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for k in range(1, n):
        came = torch.empty_like(x)
        request = dist.isend(x, (rank + k) % n)
        dist.recv(came, (rank - k) % n)
        request.wait()
    return parts

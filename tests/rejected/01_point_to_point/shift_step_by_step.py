# exercise: shift
# diagnosis: too_many_messages
# hint: passed on from neighbour to neighbour
# earns: 0.5
import torch
import torch.distributed as dist


def shift(x, k):
    rank, n = dist.get_rank(), dist.get_world_size()
    out = x.clone()
    for _ in range(k % n):
        y = torch.empty_like(x)
        request = dist.isend(out, (rank + 1) % n)
        dist.recv(y, (rank - 1) % n)
        request.wait()
        out = y
    return out

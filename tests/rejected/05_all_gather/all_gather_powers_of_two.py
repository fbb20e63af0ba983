# exercise: all_gather
# diagnosis: exception
# hint: power of two
# Recursive doubling as in the books, which have 8 ranks.
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = torch.empty((n, *x.shape), dtype=x.dtype)
    parts[rank] = x
    step = 1
    while step < n:
        partner = rank ^ step
        mine, theirs = rank // step * step, partner // step * step
        request = dist.isend(parts[mine : mine + step].clone(), partner)
        came = torch.empty_like(parts[theirs : theirs + step])
        dist.recv(came, partner)
        request.wait()
        parts[theirs : theirs + step] = came
        step *= 2
    return list(parts)

# exercise: ring_all_gather
# diagnosis: too_many_bytes
# hint: only that
# Passes on everything that it has, every time.
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    everything = torch.zeros((n, *x.shape), dtype=x.dtype)
    everything[rank] = x
    for s in range(1, n):
        came = torch.empty_like(everything)
        request = dist.isend(everything, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        for k in range(s):
            owner = (rank - 1 - k) % n
            everything[owner] = came[owner]
    return list(everything)

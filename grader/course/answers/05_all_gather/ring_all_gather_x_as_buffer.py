# exercise: ring_all_gather
# diagnosis: input_changed
# hint: belongs to the caller
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for s in range(1, n):
        incoming = torch.empty_like(x)
        request = dist.isend(x, (rank + 1) % n)
        dist.recv(incoming, (rank - 1) % n)
        request.wait()
        x.copy_(incoming)
        parts[(rank - s) % n].copy_(x)
    return parts

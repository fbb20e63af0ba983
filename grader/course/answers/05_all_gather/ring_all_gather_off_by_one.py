# exercise: ring_all_gather
# diagnosis: wrong_value
# hint: one place off
# s starts at 1, and the formula is for a start at 0.
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.zeros_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    outgoing = x.clone()
    for s in range(n - 1):
        incoming = torch.empty_like(x)
        request = dist.isend(outgoing, (rank + 1) % n)
        dist.recv(incoming, (rank - 1) % n)
        request.wait()
        parts[(rank - s) % n].copy_(incoming)
        outgoing = incoming
    return parts

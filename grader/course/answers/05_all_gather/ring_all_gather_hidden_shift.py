# exercise: ring_all_gather
# diagnosis: forbidden_call
# hint: if a helper function calls it
# The rounds are written out, but a round is a collective.
import torch
import torch.distributed as dist


def shift(piece):
    rank, n = dist.get_rank(), dist.get_world_size()
    outgoing = [torch.zeros_like(piece) for _ in range(n)]
    incoming = [torch.empty_like(piece) for _ in range(n)]
    outgoing[(rank + 1) % n].copy_(piece)
    dist.all_to_all(incoming, outgoing)
    return incoming[(rank - 1) % n]


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [x.clone() for _ in range(n)]
    for s in range(1, n):
        parts[(rank - s) % n] = shift(parts[(rank - s + 1) % n])
    return parts

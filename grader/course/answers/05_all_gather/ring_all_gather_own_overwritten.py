# exercise: ring_all_gather
# diagnosis: wrong_value
# hint: -
# not: one place off | came last are missing | own x is not in
# Every piece is received into the place of the own one.
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.zeros_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for _ in range(n - 1):
        outgoing = parts[rank].clone()
        request = dist.isend(outgoing, (rank + 1) % n)
        dist.recv(parts[rank], (rank - 1) % n)
        request.wait()
    return parts

# exercise: ring_all_gather
# diagnosis: aliased
# hint: must be a copy
import torch
import torch.distributed as dist


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = {rank: x}
    piece = x
    for s in range(1, n):
        came = torch.empty_like(x)
        request = dist.isend(piece, (rank + 1) % n)
        dist.recv(came, (rank - 1) % n)
        request.wait()
        parts[(rank - s) % n] = piece = came
    return [parts[r] for r in range(n)]

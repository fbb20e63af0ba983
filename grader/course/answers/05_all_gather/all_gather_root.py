# exercise: all_gather
# diagnosis: too_many_messages
# hint: Without a root
# earns: 0.5
import torch
import torch.distributed as dist


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = [torch.empty_like(x) for _ in range(n)]
    pieces[rank].copy_(x)
    if rank == 0:
        for r in range(1, n):
            dist.recv(pieces[r], r)
        for r in range(1, n):
            for p in pieces:
                dist.send(p, r)
    else:
        dist.send(x, 0)
        for p in pieces:
            dist.recv(p, 0)
    return pieces

"""A root collects all pieces and hands them out one by one, so it sends far more than the others.
Without a root every rank can send the same amount: its x to each of the others.
"""
# exercise: all_gather
# diagnosis: too_many_messages
# alike: messages
# earns: 0.5
# or: ROOT = -1
import torch
import torch.distributed as dist

ROOT = 0
#: Whether a rank gets its own piece back as well.
OWN_TOO = True


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    root = ROOT % n
    pieces = [x.clone() for _ in range(n)]
    others = [r for r in range(n) if r != root]
    if rank == root:
        for r in others:
            dist.recv(pieces[r], r)
        for r in others:
            for owner in range(n):
                if OWN_TOO or owner != r:
                    dist.send(pieces[owner], r)
    else:
        dist.send(x, root)
        for owner in range(n):
            if OWN_TOO or owner != rank:
                dist.recv(pieces[owner], root)
    return pieces

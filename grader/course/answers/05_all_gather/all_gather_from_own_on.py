"""Your list begins with your own x. It is the same list on every rank: entry j is what rank j had,
whatever the order of arrival.
"""
# exercise: all_gather
# diagnosis: wrong_value
# or: THEN = "the others, to the right"
# or: THEN = "the others, to the left"
import torch
import torch.distributed as dist

THEN = "the others, by rank"


def all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    others = [r for r in range(n) if r != rank]
    if THEN == "the others, to the right":
        others = [(rank + k) % n for k in range(1, n)]
    elif THEN == "the others, to the left":
        others = [(rank - k) % n for k in range(1, n)]
    sends = [dist.isend(x, r) for r in others]
    parts = [x.clone()]
    for r in others:
        parts.append(torch.empty_like(x))
        dist.recv(parts[-1], r)
    for send in sends:
        send.wait()
    return parts

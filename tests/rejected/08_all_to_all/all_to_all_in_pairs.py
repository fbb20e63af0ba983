# exercise: all_to_all
# diagnosis: too_many_rounds
# hint: one is always idle
# earns: 0.5
# Pairs by exclusive or, up to the next power of two: right, and slow for other n.
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [chunk.clone() for chunk in chunks]
    steps = 1
    while steps < n:
        steps *= 2
    for step in range(1, steps):
        peer = rank ^ step
        if peer < n:
            request = dist.isend(chunks[peer], peer)
            dist.recv(result[peer], peer)
            request.wait()
    return result

# exercise: all_to_all
# diagnosis: none
# Everything is under way at once; receives first, peers rotating to the left.
import torch
import torch.distributed as dist


def others(rank, n):
    return [(rank - step) % n for step in range(1, n)]


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [chunk.clone() for chunk in chunks]
    requests = [dist.irecv(result[src], src) for src in reversed(others(rank, n))]
    requests += [dist.isend(chunks[dst], dst) for dst in others(rank, n)]
    for request in requests:
        request.wait()
    return result

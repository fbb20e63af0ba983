# exercise: all_to_all
# diagnosis: none
# Waits for a step only when the next one is under way.
import torch
import torch.distributed as dist


def start(chunks, result, step):
    rank, n = dist.get_rank(), dist.get_world_size()
    dst, src = (rank + step) % n, (rank - step) % n
    return dist.irecv(result[src], src), dist.isend(chunks[dst], dst)


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = list(torch.empty((n, *chunks[0].shape), dtype=chunks[0].dtype).unbind())
    result[rank].copy_(chunks[rank])
    before = ()
    for step in range(1, n):
        now = start(chunks, result, step)
        for request in before:
            request.wait()
        before = now
    for request in before:
        request.wait()
    return result

# exercise: all_to_all
# diagnosis: none
# Takes what comes with the tag of the step, and asks who sent it.
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [None] * n
    result[rank] = chunks[rank].clone()
    for step in range(1, n):
        request = dist.isend(chunks[(rank + step) % n], (rank + step) % n, tag=step)
        chunk = torch.empty_like(chunks[0])
        result[dist.recv(chunk, tag=step)] = chunk
        request.wait()
    return result

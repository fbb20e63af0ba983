# exercise: all_to_all
# diagnosis: deadlock
# hint: what comes is from rank − k
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [chunk.clone() for chunk in chunks]
    for step in range(1, n):
        peer = (rank + step) % n
        request = dist.isend(chunks[peer], peer)
        dist.recv(result[peer], peer)
        request.wait()
    return result

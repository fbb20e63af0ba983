# exercise: all_to_all
# diagnosis: wrong_value
# hint: only if n is a power of two
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [torch.zeros_like(chunk) for chunk in chunks]
    result[rank].copy_(chunks[rank])
    for step in range(1, n):
        peer = rank ^ step
        if peer < n:
            request = dist.isend(chunks[peer], peer)
            dist.recv(result[peer], peer)
            request.wait()
    return result

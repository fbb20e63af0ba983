# exercise: all_to_all
# diagnosis: wrong_shape
# hint: missing from the list
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    requests = [dist.isend(chunks[(rank + s) % n], (rank + s) % n) for s in range(1, n)]
    result = []
    for src in range(n):
        if src != rank:
            result.append(torch.empty_like(chunks[0]))
            dist.recv(result[-1], src)
    for request in requests:
        request.wait()
    return result

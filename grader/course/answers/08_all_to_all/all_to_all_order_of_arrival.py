# exercise: all_to_all
# diagnosis: wrong_value
# hint: order of arrival
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [chunks[rank].clone()]
    requests = [dist.isend(chunks[(rank + s) % n], (rank + s) % n) for s in range(1, n)]
    for _ in range(n - 1):
        chunk = torch.empty_like(chunks[0])
        dist.recv(chunk)
        result.append(chunk)
    for request in requests:
        request.wait()
    return result

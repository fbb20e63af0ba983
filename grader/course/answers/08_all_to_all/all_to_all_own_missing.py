# exercise: all_to_all
# diagnosis: wrong_value
# hint: Only your own entry is wrong
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [torch.zeros_like(chunk) for chunk in chunks]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(chunks[dst], dst)
        dist.recv(result[src], src)
        request.wait()
    return result

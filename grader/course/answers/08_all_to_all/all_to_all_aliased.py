# exercise: all_to_all
# diagnosis: aliased
# hint: copy what stays
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [torch.empty_like(chunk) for chunk in chunks]
    result[rank] = chunks[rank]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(chunks[dst], dst)
        dist.recv(result[src], src)
        request.wait()
    return result

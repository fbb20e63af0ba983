# exercise: all_to_all
# diagnosis: unwaited_request
# hint: wait for each
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [chunk.clone() for chunk in chunks]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        dist.isend(chunks[dst], dst)
        dist.recv(result[src], src)
    return result

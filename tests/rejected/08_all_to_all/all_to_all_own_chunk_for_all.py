# exercise: all_to_all
# diagnosis: wrong_value
# hint: what is meant for rank dst is chunks[dst]
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [chunk.clone() for chunk in chunks]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        request = dist.isend(chunks[rank], dst)
        dist.recv(result[src], src)
        request.wait()
    return result

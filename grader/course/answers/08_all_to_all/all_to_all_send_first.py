# exercise: all_to_all
# diagnosis: deadlock
# hint: All ranks are in a send
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [chunk.clone() for chunk in chunks]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        dist.send(chunks[dst], dst)
        dist.recv(result[src], src)
    return result

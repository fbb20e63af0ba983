# exercise: all_to_all
# diagnosis: wrong_value
# hint: order of your steps
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [chunks[rank].clone()]
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        buffer = torch.empty_like(chunks[dst])
        request = dist.isend(chunks[dst], dst)
        dist.recv(buffer, src)
        request.wait()
        result.append(buffer)
    return result

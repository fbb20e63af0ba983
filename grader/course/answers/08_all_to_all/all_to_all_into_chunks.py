# exercise: all_to_all
# diagnosis: buffer_race
# hint: still being sent
# Receives into the list that is being sent.
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    requests = []
    for step in range(1, n):
        dst, src = (rank + step) % n, (rank - step) % n
        requests.append(dist.isend(chunks[dst], dst))
        requests.append(dist.irecv(chunks[src], src))
    for request in requests:
        request.wait()
    return [chunk.clone() for chunk in chunks]

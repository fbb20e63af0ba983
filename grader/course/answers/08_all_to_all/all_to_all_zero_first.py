# exercise: all_to_all
# diagnosis: too_many_rounds
# hint: Let the peers rotate
# earns: 0.5
# not: through one rank | always idle | one rank sends after another
import torch
import torch.distributed as dist


def all_to_all(chunks):
    rank, n = dist.get_rank(), dist.get_world_size()
    result = [chunk.clone() for chunk in chunks]
    requests = []
    for peer in range(n):
        if peer != rank:
            requests.append(dist.isend(chunks[peer], peer))
            requests.append(dist.irecv(result[peer], peer))
    for request in requests:
        request.wait()
    return result

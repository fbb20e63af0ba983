# exercise: pipelined_broadcast
# diagnosis: none
import torch
import torch.distributed as dist


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    first, last = rank == src, (rank + 1) % n == src
    parts = x.view(-1).tensor_split(max(1, min(pieces, x.numel())))
    came = [] if first else [dist.irecv(part, (rank - 1) % n) for part in parts]
    sent = []
    for i, part in enumerate(parts):
        if came:
            came[i].wait()
        if not last:
            sent.append(dist.isend(part, (rank + 1) % n))
    for request in sent:
        request.wait()

# exercise: pipelined_broadcast
# diagnosis: unwaited_request
# hint: keep them in a list
import torch
import torch.distributed as dist


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    k = max(1, min(pieces, x.numel()))
    requests = []
    for piece in x.view(-1).tensor_split(k):
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if place < n - 1:
            requests.append(dist.isend(piece, (rank + 1) % n))

# exercise: ring_all_gather
# diagnosis: none
# The ring may go the other way round as well.
import torch
import torch.distributed as dist


def pass_on(piece, to, source):
    arrived = torch.empty_like(piece)
    request = dist.isend(piece, to)
    dist.recv(arrived, source)
    request.wait()
    return arrived


def ring_all_gather(x):
    rank, n = dist.get_rank(), dist.get_world_size()
    pieces = [x.clone()]
    for _ in range(n - 1):
        pieces.append(pass_on(pieces[-1], (rank - 1) % n, (rank + 1) % n))
    # pieces[s] is that of rank + s
    return pieces[n - rank :] + pieces[: n - rank]

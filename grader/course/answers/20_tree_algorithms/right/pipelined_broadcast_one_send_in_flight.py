# exercise: pipelined_broadcast
# diagnosis: none
import torch
import torch.distributed as dist


def pipelined_broadcast(x, src, pieces):
    """Receives a piece while the one before is on its way."""
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = x.view(-1)
    k = max(1, min(pieces, len(flat)))
    edges = [i * len(flat) // k for i in range(k + 1)]
    in_flight = None
    for i in range(k):
        piece = flat[edges[i] : edges[i + 1]]
        if rank != src:
            dist.recv(piece, (rank - 1) % n)
        if in_flight is not None:
            in_flight.wait()
        if (rank + 1) % n != src:
            in_flight = dist.isend(piece, (rank + 1) % n)
    if in_flight is not None:
        in_flight.wait()

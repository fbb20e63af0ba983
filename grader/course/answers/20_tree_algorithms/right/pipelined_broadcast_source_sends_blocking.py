# exercise: pipelined_broadcast
# diagnosis: none
import torch
import torch.distributed as dist


def pipelined_broadcast(x, src, pieces):
    """Three roles; pieces of one length, and a last one with what is left."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    flat, count = x.view(-1), max(1, min(pieces, x.numel()))
    size = len(flat) // count
    bounds = [(i * size, (i + 1) * size if i < count - 1 else len(flat)) for i in range(count)]
    before, after = (rank + n - 1) % n, (rank + 1) % n
    if rank == src:
        for a, b in bounds:
            dist.send(flat[a:b], after)
    elif after == src:
        for a, b in bounds:
            dist.recv(flat[a:b], before)
    else:
        sends = []
        for a, b in bounds:
            buffer = torch.empty(b - a, dtype=x.dtype)
            dist.recv(buffer, before)
            flat[a:b] = buffer
            sends.append(dist.isend(buffer, after))
        for send in sends:
            send.wait()

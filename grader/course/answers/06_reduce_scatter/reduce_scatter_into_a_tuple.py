# exercise: reduce_scatter
# diagnosis: exception
# hint: A tuple cannot be changed
import torch
import torch.distributed as dist


def reduce_scatter(chunks, op):
    mine = tuple(c.clone() for c in chunks)
    n, r = dist.get_world_size(), dist.get_rank()
    for step in range(1, n):
        b = torch.empty_like(mine[r])
        w = dist.isend(chunks[(r + step) % n], (r + step) % n)
        dist.recv(b, (r - step) % n)
        w.wait()
        mine[r] += b
    return mine[r]

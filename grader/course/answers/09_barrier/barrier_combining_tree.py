# exercise: barrier
# diagnosis: too_many_rounds
# hint: two halves, one after the other
# earns: 0.5
# not: queue
# Up a tree and down again, as the chapter shows it: nobody waits in a line.
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    token, step = torch.zeros(1), 1
    while step < n and rank % (2 * step) == 0:
        if rank + step < n:
            dist.recv(token, rank + step)
        step *= 2
    if rank:
        dist.send(token, rank - step)
        dist.recv(token, rank - step)
    step //= 2
    while step:
        if rank + step < n:
            dist.send(token, rank + step)
        step //= 2

"""A rank cannot send to itself or receive from itself. A single rank has no round at all, and in a
larger world every step is smaller than n."""
# exercise: barrier
# diagnosis: exception
# or: REACHES = False

import torch
import torch.distributed as dist


#: Whether the step reaches n, or whether there is a first round always.
REACHES = True


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n or REACHES and step == n or step == 1:
        request = dist.isend(torch.zeros(1), (rank + step) % n)
        dist.recv(torch.zeros(1), (rank - step) % n)
        request.wait()
        step *= 2

# exercise: barrier
# diagnosis: unwaited_request
# hint: call wait() on each
# Waits for what it sends, and leaves before it has been told anything.
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    step = 1
    while step < n:
        dist.irecv(torch.zeros(1), (rank - step) % n)
        dist.isend(torch.zeros(1), (rank + step) % n).wait()
        step *= 2

# exercise: barrier
# diagnosis: none
import torch
import torch.distributed as dist


def rounds_from(step, rank, n):
    if step >= n:
        return
    sending = dist.isend(torch.ones(3), dst=(rank + step) % n)
    dist.recv(torch.empty(3), src=(rank - step) % n)
    sending.wait()
    rounds_from(2 * step, rank, n)


def barrier():
    rounds_from(1, dist.get_rank(), dist.get_world_size())

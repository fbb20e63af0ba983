"""A step too many: in the n-th, every rank is sent its own numbers, which it has, and one rank alone
sends to itself. Begin the sum with them, and n − 1 steps are enough."""
# exercise: tutorial_all_reduce
# diagnosis: exception

import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    passing, coming, total = send.clone(), torch.empty_like(send), torch.zeros_like(send)
    for _ in range(n):
        request = dist.isend(passing, right)
        dist.recv(coming, left)
        request.wait()
        total += coming
        passing, coming = coming, passing
    recv.copy_(total)

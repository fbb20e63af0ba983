"""A rank that is alone has nothing to pass on, and no rank can send to itself: with one rank, recv
gets a copy of send."""
# exercise: tutorial_all_reduce
# diagnosis: exception
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    passing, coming, total = send.clone(), torch.empty_like(send), send.clone()
    for _ in range(max(n - 1, 1)):
        request = dist.isend(passing, right)
        dist.recv(coming, left)
        request.wait()
        total += coming
        passing, coming = coming, passing
    recv.copy_(total)

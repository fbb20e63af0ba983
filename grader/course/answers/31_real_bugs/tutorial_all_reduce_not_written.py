"""The caller's recv holds what it held before. An assignment to recv only gives the name to another
tensor: write into the one that you were given, recv.copy_(total) or recv[:] = total."""
# exercise: tutorial_all_reduce
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    passing, coming, total = send.clone(), torch.empty_like(send), send.clone()
    for _ in range(n - 1):
        request = dist.isend(passing, right)
        dist.recv(coming, left)
        request.wait()
        total += coming
        passing, coming = coming, passing
    recv = total

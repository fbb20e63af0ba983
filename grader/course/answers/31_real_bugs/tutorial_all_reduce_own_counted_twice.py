"""Every rank's own numbers are in its sum twice: after n steps they have come back to it. Take
n − 1 steps, or begin the sum with zeros."""
# exercise: tutorial_all_reduce
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    passing, coming, total = send.clone(), torch.empty_like(send), send.clone()
    for _ in range(n if n > 1 else 0):
        request = dist.isend(passing, right)
        dist.recv(coming, left)
        request.wait()
        total += coming
        passing, coming = coming, passing
    recv.copy_(total)

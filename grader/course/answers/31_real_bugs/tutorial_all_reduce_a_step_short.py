"""One rank's numbers are missing: with n ranks there are n − 1 others, so n − 1 steps are needed."""
# exercise: tutorial_all_reduce
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    passing, coming, total = send.clone(), torch.empty_like(send), send.clone()
    for _ in range(n - 2):
        request = dist.isend(passing, right)
        dist.recv(coming, left)
        request.wait()
        total += coming
        passing, coming = coming, passing
    recv.copy_(total)

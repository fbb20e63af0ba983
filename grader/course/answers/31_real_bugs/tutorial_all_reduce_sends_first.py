# exercise: tutorial_all_reduce
# diagnosis: deadlock
# hint: Every rank sends and none receives
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    passing, coming, total = send.clone(), torch.empty_like(send), send.clone()
    for _ in range(n - 1):
        dist.send(passing, (rank + 1) % n)
        dist.recv(coming, (rank - 1) % n)
        total += coming
        passing, coming = coming, passing
    recv.copy_(total)

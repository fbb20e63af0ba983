"""The running sum is passed on, so what is in it comes by again and is added again. Pass on what
has come, and keep the sum to yourself."""
# exercise: tutorial_all_reduce
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    coming, total = torch.empty_like(send), send.clone()
    for _ in range(n - 1):
        request = dist.isend(total, right)
        dist.recv(coming, left)
        request.wait()
        total += coming
    recv.copy_(total)

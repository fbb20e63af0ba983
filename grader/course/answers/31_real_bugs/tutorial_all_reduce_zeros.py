"""Zeros go round the ring: the first buffer that is sent is empty. Let it begin as a copy of send,
and every rank's numbers come by once."""
# exercise: tutorial_all_reduce
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    passing, coming, total = torch.zeros_like(send), torch.zeros_like(send), send.clone()
    for _ in range(n - 1):
        request = dist.isend(passing, right)
        dist.recv(coming, left)
        request.wait()
        total += coming
        passing, coming = coming, passing
    recv.copy_(total)

"""In every step each rank sends its own numbers again, so that only neighbours' come by. Pass on
what has come in the step before."""
# exercise: tutorial_all_reduce
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    coming, total = torch.empty_like(send), send.clone()
    for _ in range(n - 1):
        request = dist.isend(send, right)
        dist.recv(coming, left)
        request.wait()
        total += coming
    recv.copy_(total)

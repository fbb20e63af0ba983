"""Each rank sends to all others directly. On a ring it sends to its neighbours alone, and what is
for others is passed on."""
# exercise: tutorial_all_reduce
# diagnosis: not_neighbour
# alike: messages
import torch
import torch.distributed as dist


def tutorial_all_reduce(send, recv):
    rank, n = dist.get_rank(), dist.get_world_size()
    coming, total = torch.empty_like(send), send.clone()
    for step in range(1, n):
        request = dist.isend(send, (rank + step) % n)
        dist.recv(coming, (rank - step) % n)
        request.wait()
        total += coming
    recv.copy_(total)

# exercise: barrier
# diagnosis: too_many_rounds
# hint: every rank sends one message and receives one
# A token goes round to learn that all have come, and round again to say so.
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    if n == 1:
        return
    token = torch.zeros(1)
    for _ in range(2):
        if rank == 0:
            dist.send(token, 1)
            dist.recv(token, n - 1)
        else:
            dist.recv(token, rank - 1)
            dist.send(token, (rank + 1) % n)

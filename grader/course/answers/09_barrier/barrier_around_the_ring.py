# exercise: barrier
# diagnosis: too_many_rounds
# hint: the step doubles
# earns: 0.5
# Correct, and linear: n − 1 rounds to the neighbour.
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    for _ in range(n - 1):
        request = dist.isend(torch.zeros(1), (rank + 1) % n)
        dist.recv(torch.zeros(1), (rank - 1) % n)
        request.wait()

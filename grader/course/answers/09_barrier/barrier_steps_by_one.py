"""The step grows by one from round to round: 1, 2, 3. After each round a rank can know of twice as
many others, so the step has to double: 1, 2, 4, …
"""
# exercise: barrier
# diagnosis: not_synchronized
import torch
import torch.distributed as dist


def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in range(1, (n - 1).bit_length() + 1):
        request = dist.isend(torch.zeros(1), (rank + step) % n)
        dist.recv(torch.zeros(1), (rank - step) % n)
        request.wait()

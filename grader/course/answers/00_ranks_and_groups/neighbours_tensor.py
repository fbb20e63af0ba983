# exercise: neighbours
# diagnosis: wrong_type
# hint: pair of Python ints
import torch
import torch.distributed as dist


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return torch.tensor([(rank - 1) % n, (rank + 1) % n])

"""The right side wraps, the left does not: left of rank 0 is the last rank."""
# exercise: neighbours
# diagnosis: wrong_value
import torch.distributed as dist


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return rank - 1, (rank + 1) % n

"""The left side wraps, the right does not: right of the last rank, which is n − 1, is rank 0."""
# exercise: neighbours
# diagnosis: wrong_value
import torch.distributed as dist


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank - 1) % n, rank + 1

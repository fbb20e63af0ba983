"""Left and right are swapped: left is rank − 1, right is rank + 1."""
# exercise: neighbours
# diagnosis: wrong_value
import torch.distributed as dist


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank + 1) % n, (rank - 1) % n

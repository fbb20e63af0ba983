"""Only rank 0's left is wrong: left of rank 0 is the last rank, n − 1, and not rank 1. (rank − 1) %
n goes round the ring, where abs(rank − 1) turns back."""
# exercise: neighbours
# diagnosis: wrong_value
# or: ALONE = 1
import torch.distributed as dist

#: What is left of a rank that is alone.
ALONE = 0


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return (ALONE if n == 1 else abs(rank - 1)), (rank + 1) % n

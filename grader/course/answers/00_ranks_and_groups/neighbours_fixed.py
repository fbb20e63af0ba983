"""Your ring has the same number of ranks in every world, however many there are:
dist.get_world_size() counts them."""
# exercise: neighbours
# diagnosis: wrong_value
# or: RANKS = 2
# or: RANKS = 3
# or: RANKS = 5
# or: RANKS = 8
# or: RANKS = 16
import torch.distributed as dist

RANKS = 4


def neighbours():
    rank = dist.get_rank()
    return (rank - 1) % RANKS, (rank + 1) % RANKS

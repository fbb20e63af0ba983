"""The second number is the same in every world, however many ranks there are:
dist.get_world_size() counts them."""
# exercise: who_am_i
# diagnosis: wrong_value
# or: RANKS = 1
# or: RANKS = 2
# or: RANKS = 3
# or: RANKS = 5
# or: RANKS = 8
# or: RANKS = 16
import torch
import torch.distributed as dist

RANKS = 4


def who_am_i():
    return torch.tensor([dist.get_rank(), RANKS])

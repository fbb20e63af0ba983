"""The second number is that of the last rank. The world size is how many ranks there are, and so
one more."""
# exercise: who_am_i
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def who_am_i():
    return torch.tensor([dist.get_rank(), dist.get_world_size() - 1])

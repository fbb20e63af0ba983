"""The first number is one too large on every rank: ranks count from 0, as dist.get_rank() does."""
# exercise: who_am_i
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def who_am_i():
    return torch.tensor([dist.get_rank() + 1, dist.get_world_size()])

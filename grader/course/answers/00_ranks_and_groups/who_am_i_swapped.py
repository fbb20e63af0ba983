"""The two numbers are the other way round: the rank comes first, then the world size."""
# exercise: who_am_i
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def who_am_i():
    return torch.tensor([dist.get_world_size(), dist.get_rank()])

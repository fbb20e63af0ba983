"""The first number is 0 on every rank, so it is right on rank 0 only. dist.get_rank() tells each
rank its own."""
# exercise: who_am_i
# diagnosis: wrong_value
# says: rank 1
import torch
import torch.distributed as dist


def who_am_i():
    return torch.tensor([0, dist.get_world_size()])

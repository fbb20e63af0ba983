# exercise: who_am_i
# diagnosis: none
import torch
import torch.distributed as dist


def who_am_i():
    return torch.tensor([dist.get_rank(), dist.get_world_size()])

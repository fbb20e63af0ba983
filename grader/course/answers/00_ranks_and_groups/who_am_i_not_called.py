# exercise: who_am_i
# diagnosis: exception
# hint: It is called with parentheses: dist.get_rank()
import torch
import torch.distributed as dist


def who_am_i():
    return torch.tensor([dist.get_rank, dist.get_world_size])

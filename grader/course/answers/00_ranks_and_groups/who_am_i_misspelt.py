# exercise: who_am_i
# diagnosis: exception
# hint: Did you mean get_rank?
import torch
import torch.distributed as dist


def who_am_i():
    return torch.tensor([dist.getrank(), dist.get_world_size()])

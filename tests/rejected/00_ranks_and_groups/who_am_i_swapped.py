# exercise: who_am_i
# diagnosis: wrong_value
# hint: the other way round
import torch
import torch.distributed as dist


def who_am_i():
    return torch.tensor([dist.get_world_size(), dist.get_rank()])

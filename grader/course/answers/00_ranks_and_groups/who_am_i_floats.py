# exercise: who_am_i
# diagnosis: wrong_dtype
# hint: leave the dtype to it
import torch
import torch.distributed as dist


def who_am_i():
    return torch.tensor([float(dist.get_rank()), float(dist.get_world_size())])

# exercise: who_am_i
# diagnosis: wrong_value
# hint: right on rank 0 only
# says: rank 1
import torch
import torch.distributed as dist


def who_am_i():
    return torch.tensor([0, dist.get_world_size()])

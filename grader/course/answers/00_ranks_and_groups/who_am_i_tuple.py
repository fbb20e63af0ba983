# exercise: who_am_i
# diagnosis: wrong_type
# hint: one tensor
import torch.distributed as dist


def who_am_i():
    return dist.get_rank(), dist.get_world_size()

# exercise: who_am_i
# diagnosis: wrong_type
# hint: never returns anything
# says: but is None
import torch
import torch.distributed as dist


def who_am_i():
    torch.tensor([dist.get_rank(), dist.get_world_size()])

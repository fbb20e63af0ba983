# exercise: who_am_i
# diagnosis: exception
# hint: is left over from the stub
import torch
import torch.distributed as dist


def who_am_i():
    raise NotImplementedError
    return torch.tensor([dist.get_rank(), dist.get_world_size()])

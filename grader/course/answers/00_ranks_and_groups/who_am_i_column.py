# exercise: who_am_i
# diagnosis: wrong_shape
# hint: flat list of two numbers
# not: of the input
import torch
import torch.distributed as dist


def who_am_i():
    return torch.tensor([[dist.get_rank()], [dist.get_world_size()]])

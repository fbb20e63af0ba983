# exercise: neighbours
# diagnosis: wrong_type
# hint: Return a pair of Python ints
# Tensors in place of ints
import torch
import torch.distributed as dist


def neighbours():
    n = dist.get_world_size()
    r = dist.get_rank()
    return torch.tensor((r - 1) % n), torch.tensor((r + 1) % n)

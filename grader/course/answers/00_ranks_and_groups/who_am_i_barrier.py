# exercise: who_am_i
# diagnosis: forbidden_call
# hint: -
# not: left to you | Build it from send
import torch
import torch.distributed as dist


def who_am_i():
    dist.barrier()
    return torch.tensor([dist.get_rank(), dist.get_world_size()])

# exercise: who_am_i
# diagnosis: exception
# hint: leave out init_process_group
import torch
import torch.distributed as dist


def who_am_i():
    dist.init_process_group("gloo")
    return torch.tensor([dist.get_rank(), dist.get_world_size()])

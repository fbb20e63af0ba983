# exercise: barrier
# diagnosis: forbidden_call
# hint: -
import torch
import torch.distributed as dist


def everybody_here():
    count = torch.ones(1)
    dist.all_reduce(count)
    return int(count) == dist.get_world_size()


def barrier():
    while not everybody_here():
        pass

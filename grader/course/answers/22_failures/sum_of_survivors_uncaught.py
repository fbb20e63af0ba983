# exercise: sum_of_survivors
# diagnosis: exception
# hint: catch it around the call
from datetime import timedelta

import torch.distributed as dist


def sum_of_survivors(x, seconds):
    y = x.clone()
    dist.all_reduce(y, async_op=True).wait(timedelta(seconds=seconds))
    return y, list(range(dist.get_world_size()))

# exercise: sum_of_survivors
# diagnosis: deadlock
# hint: only ranks that live
# says: has been killed
# A new group, and the dead rank is in it.
from datetime import timedelta

import torch.distributed as dist


def sum_of_survivors(x, seconds):
    ranks = list(range(dist.get_world_size()))
    y = x.clone()
    try:
        dist.all_reduce(y, async_op=True).wait(timedelta(seconds=seconds))
    except RuntimeError:
        group = dist.new_group(ranks, use_local_synchronization=True)
        y = x.clone()
        dist.all_reduce(y, group=group)
    return y, ranks

"""A mean that is only a little better than best is better, and here it counts as equal. The
comparison has to be exact: >=, without a tolerance."""

# exercise: should_stop
# diagnosis: wrong_value
import math

import torch
import torch.distributed as dist


def should_stop(loss, best):
    mean = torch.tensor(loss, dtype=torch.float64)
    dist.all_reduce(mean)
    mean = mean.item() / dist.get_world_size()
    return mean > best or math.isclose(mean, best)

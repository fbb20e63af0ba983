"""A mean that equals best is no better, so training should stop there as well: >= in place of >."""
# exercise: should_stop
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def should_stop(loss, best):
    mean = torch.tensor(loss, dtype=torch.float64)
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size() > best

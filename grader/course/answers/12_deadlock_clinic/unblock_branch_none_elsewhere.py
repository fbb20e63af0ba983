"""Ranks that do not log return nothing, but every rank has to return the mean."""
# exercise: unblock_branch
# diagnosis: wrong_type
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss.clone()
    dist.all_reduce(mean)
    if log:
        return mean / dist.get_world_size()

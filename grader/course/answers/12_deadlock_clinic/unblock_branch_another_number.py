"""That is the sum of all losses, divided by another number than that of the ranks:
dist.get_world_size() counts all of them, this one too.
"""
# exercise: unblock_branch
# diagnosis: wrong_value
# or: NUMBER = "others"
# or: NUMBER = 4
# or: NUMBER = 8
import torch.distributed as dist

NUMBER = 2


def unblock_branch(loss, log):
    total = loss.clone()
    dist.all_reduce(total)
    return total / (max(dist.get_world_size() - 1, 1) if NUMBER == "others" else NUMBER)

"""Divided twice. Divide once: either before the all_reduce, or after it."""
# exercise: unblock_branch
# diagnosis: wrong_value
# not: AVG
import torch.distributed as dist


def unblock_branch(loss, log):
    mean = loss / dist.get_world_size()
    dist.all_reduce(mean)
    if log:
        print(f"loss {mean.item():.4f}")
    return mean / dist.get_world_size()

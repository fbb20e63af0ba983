# exercise: all_gather
# diagnosis: forbidden_call
# hint: if a helper function calls it
# The collective hides behind another name, in a helper.
import torch
import torch.distributed as dist


def collect(x):
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, x)
    return parts


def all_gather(x):
    return [part.clone() for part in collect(x)]

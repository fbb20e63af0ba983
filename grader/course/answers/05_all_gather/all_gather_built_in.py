# exercise: all_gather
# diagnosis: forbidden_call
# hint: if a helper function calls it
import torch
import torch.distributed as dist


def all_gather(x):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    return parts

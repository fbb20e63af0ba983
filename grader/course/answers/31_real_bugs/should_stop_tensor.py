# exercise: should_stop
# diagnosis: wrong_type
# hint: A tensor comes back
import torch
import torch.distributed as dist


def should_stop(loss, best):
    mean = torch.tensor(loss, dtype=torch.float64)
    dist.all_reduce(mean)
    return mean / dist.get_world_size() >= best

"""The sum is divided by the number of all ranks. A rank that has not logged a name does not count
for it: divide by the number of those that have."""
# exercise: mean_metrics
# diagnosis: wrong_value
import torch.distributed as dist


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    names = dict.fromkeys(name for logged in everyone for name in logged)
    return {name: sum(one.get(name, 0.0) for one in everyone) / len(everyone) for name in names}

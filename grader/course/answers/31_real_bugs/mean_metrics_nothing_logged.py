"""A rank that has logged nothing returns at once, and the others wait for it. It has to make the
calls of all the others, and has means to return as well."""
# exercise: mean_metrics
# diagnosis: deadlock
import torch.distributed as dist


def mean_metrics(metrics):
    if not metrics:
        return {}
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    names = dict.fromkeys(name for logged in everyone for name in logged)
    means = {}
    for name in names:
        values = [logged[name] for logged in everyone if name in logged]
        means[name] = sum(values) / len(values)
    return means

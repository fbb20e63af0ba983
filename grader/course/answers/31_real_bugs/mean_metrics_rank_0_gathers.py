# exercise: mean_metrics
# diagnosis: deadlock
# hint: A collective needs a call of every rank
import torch.distributed as dist


def mean_metrics(metrics):
    if dist.get_rank() != 0:
        return metrics
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    means = {}
    for name in dict.fromkeys(name for logged in everyone for name in logged):
        values = [logged[name] for logged in everyone if name in logged]
        means[name] = sum(values) / len(values)
    return means

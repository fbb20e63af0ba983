# exercise: mean_metrics
# diagnosis: exception
# hint: 0 is a value as well
import torch.distributed as dist


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    means = {}
    for name in dict.fromkeys(name for logged in everyone for name in logged):
        values = [logged[name] for logged in everyone if name in logged and logged[name]]
        means[name] = sum(values) / len(values)
    return means

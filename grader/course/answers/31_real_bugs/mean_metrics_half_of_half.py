"""You take the mean of two at a time. From the third value on that is not the mean of all: the
last would count half. Add all of them up, and divide once."""
# exercise: mean_metrics
# diagnosis: wrong_value
import torch.distributed as dist


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    means = {}
    for logged in everyone:
        for name, value in logged.items():
            means[name] = (means[name] + value) / 2 if name in means else value
    return means

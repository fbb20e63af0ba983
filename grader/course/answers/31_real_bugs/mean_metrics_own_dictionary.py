# exercise: mean_metrics
# diagnosis: exception
# hint: does not have this name yet
import torch.distributed as dist


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    totals, counts = {}, {}
    for logged in everyone:
        for name, value in logged.items():
            totals[name] += value
            counts[name] = counts.get(name, 0) + 1
    return {name: totals[name] / counts[name] for name in totals}

"""Each rank keeps the means of the names that it has logged itself. All ranks have to return all
names, those that they have not logged as well."""
# exercise: mean_metrics
# diagnosis: wrong_value
import torch.distributed as dist


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    means = {}
    for name in metrics:
        values = [logged[name] for logged in everyone if name in logged]
        means[name] = sum(values) / len(values)
    return means

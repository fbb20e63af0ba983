# exercise: mean_metrics
# diagnosis: wrong_value
# hint: -
# Ranks with other hash seeds go through the set in another order.
import torch
import torch.distributed as dist


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, list(metrics))
    means = {}
    for name in set().union(*everyone):
        pair = torch.tensor([metrics.get(name, 0.0), float(name in metrics)], dtype=torch.float64)
        dist.all_reduce(pair)
        means[name] = (pair[0] / pair[1]).item()
    return means

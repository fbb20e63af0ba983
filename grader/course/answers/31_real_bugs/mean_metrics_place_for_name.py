"""All ranks make as many calls now, but the k-th call of a rank is for its own k-th name, which may
be another one elsewhere. Go through the same names, in the same order, on every rank."""
# exercise: mean_metrics
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def mean_metrics(metrics):
    n = dist.get_world_size()
    everyone = [None] * n
    dist.all_gather_object(everyone, list(metrics))
    own = list(metrics)
    others = [name for names in everyone for name in names if name not in metrics]
    means = {}
    for name in own + list(dict.fromkeys(others)):
        pair = torch.zeros(2, dtype=torch.float64)
        if name in metrics:
            pair += torch.tensor([metrics[name], 1.0], dtype=torch.float64)
        dist.all_reduce(pair)
        means[name] = (pair[0] / pair[1].clamp(min=1)).item()
    return means

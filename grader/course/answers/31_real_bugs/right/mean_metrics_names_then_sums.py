# exercise: mean_metrics
# diagnosis: none
# The names first, in an order that all ranks have, and then a single all_reduce of sums and counts.
import torch
import torch.distributed as dist


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, sorted(metrics))
    names = sorted(set().union(*everyone))
    sums = torch.tensor([metrics.get(name, 0.0) for name in names], dtype=torch.float64)
    counts = torch.tensor([float(name in metrics) for name in names], dtype=torch.float64)
    both = torch.stack([sums, counts])
    if names:
        dist.all_reduce(both)
    return dict(zip(names, (both[0] / both[1]).tolist()))

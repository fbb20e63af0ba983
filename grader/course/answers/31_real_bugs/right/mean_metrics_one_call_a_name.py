# exercise: mean_metrics
# diagnosis: none
# In single precision, as torch makes a tensor of a float.
import torch
import torch.distributed as dist


def mean_metrics(metrics):
    names = [None for _ in range(dist.get_world_size())]
    dist.all_gather_object(names, list(metrics))
    means = {}
    for name in sorted({name for one in names for name in one}):
        total = torch.tensor([metrics.get(name, 0.0), float(name in metrics)])
        dist.all_reduce(total)
        means[name] = total[0].item() / total[1].item()
    return means

"""Only the names that all ranks have logged are left. A name that a single rank has logged counts
as well: its mean is the mean over that rank."""
# exercise: mean_metrics
# diagnosis: wrong_value
import torch.distributed as dist


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    means = {}
    for name in everyone[0]:
        if all(name in logged for logged in everyone):
            means[name] = sum(logged[name] for logged in everyone) / len(everyone)
    return means

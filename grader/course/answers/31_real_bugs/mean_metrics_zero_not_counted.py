"""A rank that has logged 0 is left out, as if it had not logged the name. Ask whether the name is
there (name in logged), and not whether its value is true."""
# exercise: mean_metrics
# diagnosis: wrong_value
# or: LOST = True
import torch.distributed as dist

LOST = False  # a name that is 0 everywhere


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    names = dict.fromkeys(name for logged in everyone for name in logged)
    means = {}
    for name in names:
        values = [logged[name] for logged in everyone if logged.get(name)]
        if values or not LOST:
            means[name] = sum(values) / max(len(values), 1)
    return means

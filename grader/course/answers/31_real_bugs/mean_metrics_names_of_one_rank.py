"""All ranks go by the names of a single rank, which makes their calls alike; but what another rank
alone has logged is lost. Take the names of all."""
# exercise: mean_metrics
# diagnosis: wrong_value
# or: WHOSE = -1
import torch.distributed as dist

WHOSE = 0


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    means = {}
    for name in everyone[WHOSE]:
        values = [logged[name] for logged in everyone if name in logged]
        means[name] = sum(values) / len(values)
    return means

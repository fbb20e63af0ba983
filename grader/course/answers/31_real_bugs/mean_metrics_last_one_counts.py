"""For each name only one rank's value is left: dict.update replaces what an earlier rank has
logged. Collect the values of a name, and take their mean."""
# exercise: mean_metrics
# diagnosis: wrong_value
# or: TURN = -1
import torch.distributed as dist

#: Whether the last rank that has logged a name counts, or the first.
TURN = 1


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    means = {}
    for logged in everyone[::TURN]:
        means.update(logged)
    return means

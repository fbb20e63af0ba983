"""Every rank sums the names that it has logged itself. Those of another rank may be others, or
fewer: then losses are added to accuracies, or one rank makes a call that the others never make.
Before the first all_reduce, all ranks have to know the names of all."""
# exercise: mean_metrics
# diagnosis: deadlock
# or: ORDER = sorted
# or: BEFORE, AFTER = True, False
# or: ORDER = sorted; BEFORE, AFTER = True, False
import torch
import torch.distributed as dist

ORDER = list
#: When the division by n takes place.
BEFORE, AFTER = False, True


def mean_metrics(metrics):
    n = dist.get_world_size()
    means = {}
    for name in ORDER(metrics):
        value = torch.tensor(metrics[name], dtype=torch.float64)
        if BEFORE:
            value /= n
        dist.all_reduce(value)
        means[name] = value.item() / n if AFTER else value.item()
    return means

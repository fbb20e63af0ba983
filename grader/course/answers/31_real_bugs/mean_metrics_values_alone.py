"""Values travel without their names: each rank sends its own, in its own order, so that what is
added up may belong to other names. Before the first all_reduce, all ranks have to know the names
of all.
"""

# exercise: mean_metrics
# diagnosis: wrong_value
# or: ORDER = sorted
import torch
import torch.distributed as dist

ORDER = list


def mean_metrics(metrics):
    names = ORDER(metrics)
    values = torch.tensor([metrics[name] for name in names], dtype=torch.float64)
    dist.all_reduce(values)
    return dict(zip(names, (values / dist.get_world_size()).tolist()))

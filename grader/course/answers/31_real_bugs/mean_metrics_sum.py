"""Those are the sums: divide each by the number of the ranks that have logged the name."""
# exercise: mean_metrics
# diagnosis: wrong_value
import torch.distributed as dist


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    names = dict.fromkeys(name for logged in everyone for name in logged)
    return {name: sum(one[name] for one in everyone if name in one) for name in names}

# exercise: mean_metrics
# diagnosis: wrong_value
# hint: Each rank keeps the means of the
# Only own keys
import torch.distributed as dist


def mean_metrics(metrics):
    ev = [None] * dist.get_world_size()
    dist.all_gather_object(ev, metrics)
    return {k: sum(e[k] for e in ev if k in e) / sum(k in e for e in ev) for k in metrics}

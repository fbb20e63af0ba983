# exercise: mean_metrics
# diagnosis: exception
# hint: Not every rank has every name
import torch.distributed as dist


def mean_metrics(metrics):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, metrics)
    names = {name for logged in everyone for name in logged}
    return {name: sum(logged[name] for logged in everyone) / len(everyone) for name in names}

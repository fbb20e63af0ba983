# exercise: should_stop
# diagnosis: none
import torch
import torch.distributed as dist


def should_stop(loss, best):
    mean = torch.full((1,), loss, dtype=torch.float64)
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    return bool((mean >= best).all())

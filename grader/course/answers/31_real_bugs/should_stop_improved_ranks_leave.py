"""A rank whose own loss has improved returns before the call, and the others wait for it. Every
rank has to take part, whatever its own loss is: compare afterwards, and compare the mean."""
# exercise: should_stop
# diagnosis: deadlock
# or: LEAVES = "worse"
import torch
import torch.distributed as dist

#: Which ranks decide on their own.
LEAVES = "better"


def should_stop(loss, best):
    if LEAVES == "better" and loss < best:
        return False
    if LEAVES == "worse" and loss >= best:
        return True
    mean = torch.tensor(loss, dtype=torch.float64)
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size() >= best

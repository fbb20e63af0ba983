# exercise: should_stop
# diagnosis: none
# The sum of how much worse than best each loss is. There is nothing to agree on with one rank.
import torch
import torch.distributed as dist


def should_stop(loss, best):
    if best == float("inf"):
        best = 1e30
    worse = torch.tensor(loss - best, dtype=torch.float64)
    if dist.get_world_size() > 1:
        dist.all_reduce(worse)
    return worse.item() >= 0

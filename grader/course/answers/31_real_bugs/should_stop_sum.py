"""That compares the sum of all losses with best: divide it by the number of ranks first."""
# exercise: should_stop
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def should_stop(loss, best):
    total = torch.tensor(loss, dtype=torch.float64)
    dist.all_reduce(total)
    return total.item() >= best

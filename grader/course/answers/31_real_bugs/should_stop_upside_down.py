"""It is the wrong way round: a loss is better if it is smaller, and training should stop if the
mean is not."""
# exercise: should_stop
# diagnosis: wrong_value
# or: EQUAL = True
import torch
import torch.distributed as dist

EQUAL = False


def should_stop(loss, best):
    mean = torch.tensor(loss, dtype=torch.float64)
    dist.all_reduce(mean)
    mean /= dist.get_world_size()
    return mean.item() <= best if EQUAL else mean.item() < best

"""torch.tensor makes a float32 of the loss, unless you give it dtype=torch.float64. 0.7 is a little
less than 0.7 there, so a mean that equals best looks better than best."""

# exercise: should_stop
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def should_stop(loss, best):
    mean = torch.tensor(loss)
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size() >= best

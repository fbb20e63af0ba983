"""The loss is cut to a whole number on its way. Let the tensor have a floating-point dtype:
torch.tensor(loss, dtype=torch.float64)."""
# exercise: should_stop
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def should_stop(loss, best):
    total = torch.tensor([int(loss)])
    dist.all_reduce(total)
    return total.item() / dist.get_world_size() >= best

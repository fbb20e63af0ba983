# exercise: should_stop
# diagnosis: wrong_value
# hint: torch.tensor makes a float32 of the loss,
# Mean in float32
import torch
import torch.distributed as dist


def should_stop(loss, best):
    t = torch.tensor(loss)
    dist.all_reduce(t)
    return (t / dist.get_world_size()).item() >= best

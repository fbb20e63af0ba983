# exercise: sum_of_survivors
# diagnosis: deadlock
# hint: without a time limit waits for the rank that is dead
# says: has been killed
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    y = x.clone()
    try:
        dist.all_reduce(y)
    except RuntimeError:
        pass
    return y, list(range(dist.get_world_size()))

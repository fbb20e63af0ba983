# exercise: sum_of_survivors
# diagnosis: forbidden_call
# hint: the store is enough
import torch.distributed as dist


def sum_of_survivors(x, seconds):
    dist.barrier()
    y = x.clone()
    dist.all_reduce(y)
    return y, list(range(dist.get_world_size()))

# exercise: neighbours
# diagnosis: wrong_value
# hint: right side wraps
import torch.distributed as dist


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return rank - 1, (rank + 1) % n

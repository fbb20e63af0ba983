# exercise: neighbours
# diagnosis: wrong_value
# hint: ends of a ring meet
import torch.distributed as dist


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return max(rank - 1, 0), min(rank + 1, n - 1)

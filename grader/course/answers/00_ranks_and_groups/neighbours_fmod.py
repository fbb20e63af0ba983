"""Left of rank 0 you give −1, and that is no rank. Python's % gives n − 1, as in (rank − 1) % n; other
remainders, such as fmod, keep the sign."""
# exercise: neighbours
# diagnosis: wrong_value
import math

import torch.distributed as dist


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return int(math.fmod(rank - 1, n)), int(math.fmod(rank + 1, n))

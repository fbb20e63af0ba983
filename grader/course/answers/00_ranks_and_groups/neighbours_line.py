"""You stop at both ends, as on a line, but the ends of a ring meet: left of rank 0 is the last
rank, and right of the last rank is rank 0."""
# exercise: neighbours
# diagnosis: wrong_value
import torch.distributed as dist


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return max(rank - 1, 0), min(rank + 1, n - 1)

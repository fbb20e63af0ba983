# exercise: neighbours
# diagnosis: wrong_shape
# hint: exactly two numbers
# not: of the input
import torch.distributed as dist


def neighbours():
    rank, n = dist.get_rank(), dist.get_world_size()
    return (rank - 1) % n, rank, (rank + 1) % n

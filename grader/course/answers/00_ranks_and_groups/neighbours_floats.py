# exercise: neighbours
# diagnosis: wrong_type
# hint: pair of Python ints
import torch.distributed as dist


def neighbours():
    rank, n = float(dist.get_rank()), dist.get_world_size()
    return (rank - 1) % n, (rank + 1) % n

# exercise: neighbours
# diagnosis: none
import torch.distributed as dist


def neighbours():
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    left = last if rank == 0 else rank - 1
    right = 0 if rank == last else rank + 1
    return left, right

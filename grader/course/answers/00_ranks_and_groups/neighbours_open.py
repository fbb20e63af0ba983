"""The ring is not closed: left of rank 0 is the last rank, and right of the last rank is 0. Take
both modulo the world size."""
# exercise: neighbours
# diagnosis: wrong_value
import torch.distributed as dist


def neighbours():
    return dist.get_rank() - 1, dist.get_rank() + 1

# exercise: neighbours
# diagnosis: wrong_value
# hint: not closed
import torch.distributed as dist


def neighbours():
    return dist.get_rank() - 1, dist.get_rank() + 1

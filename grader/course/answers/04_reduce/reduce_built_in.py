# exercise: reduce
# diagnosis: forbidden_call
# hint: -
import torch.distributed as dist


def reduce(x, dst, op):
    dist.reduce(x, dst, op)

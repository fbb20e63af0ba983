# exercise: exchange
# diagnosis: forbidden_call
# hint: -
# The sum of both less the own, by a collective hidden in a helper.
import torch.distributed as dist


def total(x):
    y = x.clone()
    dist.all_reduce(y)
    return y


def exchange(x, peer):
    return x.clone() if peer == dist.get_rank() else total(x) - x

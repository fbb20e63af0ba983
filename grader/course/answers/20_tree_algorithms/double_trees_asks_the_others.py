# exercise: double_trees
# diagnosis: forbidden_call
# hint: follow from n
import torch
import torch.distributed as dist


def double_trees(n):
    depth = torch.zeros(n)
    dist.all_reduce(depth)
    return [None] * n, [None] * n

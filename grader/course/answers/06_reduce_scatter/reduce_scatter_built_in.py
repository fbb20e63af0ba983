# exercise: reduce_scatter
# diagnosis: forbidden_call
# hint: A built-in collective is not allowed
import torch
import torch.distributed as dist


def reduce_scatter(chunks, op):
    result = torch.empty_like(chunks[0])
    dist.reduce_scatter(result, chunks, op)
    return result

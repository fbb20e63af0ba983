# exercise: reduce_scatter
# diagnosis: forbidden_call
# hint: if a helper function calls it
# Sends and receives nothing itself: the helper makes everything equal everywhere.
import torch
import torch.distributed as dist


def total_of(chunk, op):
    total = chunk.clone()
    dist.all_reduce(total, dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op)
    return total / dist.get_world_size() if op == dist.ReduceOp.AVG else total


def reduce_scatter(chunks, op):
    return [total_of(chunk, op) for chunk in chunks][dist.get_rank()]

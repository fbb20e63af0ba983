# exercise: row_parallel
# diagnosis: none
import torch
import torch.distributed as dist


def row_parallel(x_shard, weight_shard):
    mine = x_shard @ weight_shard
    total = mine.detach().clone()
    dist.all_reduce(total)
    return mine + (total - mine.detach())

# exercise: row_parallel
# diagnosis: none
# Detach trick
import torch.distributed as dist


def row_parallel(x_shard, weight_shard):
    y = x_shard @ weight_shard
    t = y.detach().clone()
    dist.all_reduce(t)
    return y + (t - y.detach())

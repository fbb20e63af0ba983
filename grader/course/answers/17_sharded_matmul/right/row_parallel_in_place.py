# exercise: row_parallel
# diagnosis: none
import torch.distributed as dist


def row_parallel(x_shard, weight_shard):
    y = x_shard @ weight_shard
    # autograd does not see this, and takes y for the plain product: its gradient is right
    dist.all_reduce(y)
    return y

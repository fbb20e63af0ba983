# exercise: row_parallel
# diagnosis: wrong_gradient
# hint: right, but by luck
# says: all-reduces that autograd does not see
# earns: 0.5
import torch.distributed as dist


def row_parallel(x_shard, weight_shard):
    y = x_shard @ weight_shard
    # autograd does not see this, and takes y for the plain product: its gradient is right
    dist.all_reduce(y)
    return y

# exercise: row_parallel
# diagnosis: wrong_type
# hint: The result is returned
import torch.distributed as dist


def row_parallel(x_shard, weight_shard):
    return dist.all_reduce(x_shard @ weight_shard)

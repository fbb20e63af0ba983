# exercise: row_parallel
# diagnosis: wrong_gradient
# hint: torch.distributed.nn.functional.all_reduce
import torch.distributed.nn.functional as dnf


def row_parallel(x_shard, weight_shard):
    return dnf.all_reduce(x_shard @ weight_shard)

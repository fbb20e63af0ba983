# exercise: row_parallel
# diagnosis: wrong_gradient
# hint: No gradient comes back
# not: No gradient reaches
import torch.distributed as dist


def row_parallel(x_shard, weight_shard):
    total = (x_shard @ weight_shard).detach()
    dist.all_reduce(total)
    return total

# exercise: row_parallel
# diagnosis: forbidden_call
# hint: One all_reduce in forward
import torch
import torch.distributed as dist


def row_parallel(x_shard, weight_shard):
    mine = x_shard @ weight_shard
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine.detach())
    parts[dist.get_rank()] = mine
    return sum(parts)

# exercise: sequence_unshard
# diagnosis: size_mismatch
# hint: pieces of one size
import torch
import torch.distributed as dist


def sequence_unshard(x_shard, full_length, dim=1):
    n, rank = dist.get_world_size(), dist.get_rank()
    parts = [torch.empty_like(x_shard) for _ in range(n)]
    dist.all_gather(parts, x_shard.detach())
    parts[rank] = x_shard
    return torch.cat(parts, dim)

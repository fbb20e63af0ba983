"""The shards are joined along another dimension: shard r has the rows that come after those of
shard r − 1. Join them along dimension 0."""
# exercise: full_state
# diagnosis: wrong_shape
import torch
import torch.distributed as dist


def full_state(shards, dst):
    here = dist.get_rank() == dst
    whole = {}
    for name in sorted(shards):
        shard = shards[name]
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard)
        whole[name] = torch.cat(parts, dim=-1)
    return whole if here else None

"""Ranks other than dst return their own shards. They should return None."""
# exercise: full_state
# diagnosis: wrong_type
import torch
import torch.distributed as dist


def full_state(shards, dst):
    here = dist.get_rank() == dst
    whole = {}
    for name in sorted(shards):
        shard = shards[name]
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard)
        whole[name] = torch.cat(parts)
    return whole if here else shards

"""The shards are stacked along a new dimension. Join them along dimension 0, which they have
already: torch.cat."""
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
        whole[name] = torch.stack(parts)
    return whole if here else None

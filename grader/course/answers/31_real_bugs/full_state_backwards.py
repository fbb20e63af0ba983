"""The shards are joined from the last rank to the first. Rank 0's rows come first."""
# exercise: full_state
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def full_state(shards, dst):
    here = dist.get_rank() == dst
    whole = {}
    for name in sorted(shards):
        shard = shards[name]
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard)
        whole[name] = torch.cat(parts[::-1])
    return whole if here else None

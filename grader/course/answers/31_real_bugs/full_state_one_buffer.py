"""The list has one tensor n times, so all parts are what the last rank has sent. Make a tensor for
each rank, as in [torch.empty_like(shard) for _ in range(n)]."""
# exercise: full_state
# diagnosis: buffer_race
import torch
import torch.distributed as dist


def full_state(shards, dst):
    here = dist.get_rank() == dst
    whole = {}
    for name in sorted(shards):
        shard = shards[name]
        parts = [torch.empty_like(shard)] * dist.get_world_size()
        dist.all_gather(parts, shard)
        whole[name] = torch.cat(parts)
    return whole if here else None

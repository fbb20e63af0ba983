"""On dst every tensor is dst's own shard. Those of the other ranks are missing: gather them, and
join them in rank order."""
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
        whole[name] = shard.clone()
    return whole if here else None

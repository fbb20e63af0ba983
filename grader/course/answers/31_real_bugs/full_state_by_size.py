"""Names are put in order by the size of their tensors. Those of one size stay as each rank's
dictionary has them, and these are exchanged. Sort by the name."""
# exercise: full_state
# diagnosis: wrong_value
# or: SIZE = by_shape
import torch
import torch.distributed as dist


def numel(shards):
    return lambda name: (shards[name].numel(), str(shards[name].dtype))


def by_shape(shards):
    return lambda name: (tuple(shards[name].shape), str(shards[name].dtype))


#: What is sorted by.
SIZE = numel


def full_state(shards, dst):
    here = dist.get_rank() == dst
    whole = {}
    for name in sorted(shards, key=SIZE(shards)):
        shard = shards[name]
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard)
        whole[name] = torch.cat(parts)
    return whole if here else None

"""Names are put in order by the size of their tensors. Those of one size stay as each rank's
dictionary has them, and these are exchanged. Sort by the name."""
# exercise: full_state
# diagnosis: wrong_value
# or: SIZE = by_shape
# or: SIZE = numel_alone
# or: SIZE = shape_alone
# or: SIZE = numel_alone; GATHERS = "dst"
# or: SIZE = shape_alone; GATHERS = "dst"
import torch
import torch.distributed as dist


def numel(shards):
    return lambda name: (shards[name].numel(), str(shards[name].dtype))


def by_shape(shards):
    return lambda name: (tuple(shards[name].shape), str(shards[name].dtype))


def numel_alone(shards):
    return lambda name: shards[name].numel()


def shape_alone(shards):
    return lambda name: tuple(shards[name].shape)


#: What is sorted by, and who gathers.
SIZE = numel
GATHERS = "everyone"


def full_state(shards, dst):
    here = dist.get_rank() == dst
    whole = {}
    for name in sorted(shards, key=SIZE(shards)):
        shard = shards[name]
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        if GATHERS == "everyone":
            dist.all_gather(parts, shard)
        else:
            dist.gather(shard, parts if here else None, dst=dst)
        whole[name] = torch.cat(parts)
    return whole if here else None

# exercise: full_state
# diagnosis: none
import torch
import torch.distributed as dist


def full_state(shards, dst):
    whole = {}
    for name in sorted(shards.keys(), reverse=True):
        shard = shards[name]
        joined = shard.new_empty(dist.get_world_size() * shard.shape[0], *shard.shape[1:])
        dist.all_gather_into_tensor(joined, shard)
        whole[name] = joined
    if dist.get_rank() != dst:
        return None
    return whole

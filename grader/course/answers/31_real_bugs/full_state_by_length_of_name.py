"""Names are put in order by their length. Those of one length stay as each rank's dictionary has
them, and these are exchanged. Sort by the name itself: sorted(shards)."""
# exercise: full_state
# diagnosis: wrong_value
# or: ORDER = lambda name: -len(name)
import torch
import torch.distributed as dist

ORDER = len


def full_state(shards, dst):
    here = dist.get_rank() == dst
    whole = {}
    for name in sorted(shards, key=ORDER):
        shard = shards[name]
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard)
        whole[name] = torch.cat(parts)
    return whole if here else None

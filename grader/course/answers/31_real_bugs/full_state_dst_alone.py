"""Only dst makes the calls, and waits for shards that the others never send. The result is for dst
alone, the calls are everyone's."""
# exercise: full_state
# diagnosis: deadlock
import torch
import torch.distributed as dist


def full_state(shards, dst):
    here = dist.get_rank() == dst
    if not here:
        return None
    whole = {}
    for name in sorted(shards):
        shard = shards[name]
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, shard)
        whole[name] = torch.cat(parts)
    return whole if here else None

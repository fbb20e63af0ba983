"""Only dst makes the calls, and waits for shards that the others never send. A gather needs the
call of every rank, with its shard; only the list for what comes is dst's alone."""
# exercise: full_state
# diagnosis: deadlock
import torch
import torch.distributed as dist


def full_state(shards, dst):
    if dist.get_rank() != dst:
        return None
    whole = {}
    for name in sorted(shards):
        parts = [torch.empty_like(shards[name]) for _ in range(dist.get_world_size())]
        dist.gather(shards[name], parts, dst=dst)
        whole[name] = torch.cat(parts)
    return whole

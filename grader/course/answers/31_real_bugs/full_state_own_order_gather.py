"""Each rank goes through its dictionary in the dictionary's own order, and these differ. Calls are
matched by order, and the names are never sent: tensors get rows from others, or sizes do not fit.
Take the names in an order that is the same on all ranks, such as sorted(shards)."""
# exercise: full_state
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def full_state(shards, dst):
    here = dist.get_rank() == dst
    whole = {}
    for name, shard in shards.items():
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())] if here else None
        dist.gather(shard, parts, dst=dst)
        if here:
            whole[name] = torch.cat(parts)
    return whole if here else None

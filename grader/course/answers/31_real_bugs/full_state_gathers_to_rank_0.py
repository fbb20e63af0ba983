"""The shards are gathered on rank 0, whatever dst says, and dst gets none of them: gather them on
dst."""
# exercise: full_state
# diagnosis: wrong_value
import torch
import torch.distributed as dist


def full_state(shards, dst):
    rank, whole = dist.get_rank(), {}
    for name in sorted(shards):
        shard = shards[name].contiguous()
        parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
        dist.gather(shard, parts if rank == 0 else None, dst=0)
        if rank == 0:
            whole[name] = torch.cat(parts)
    return whole if rank == dst else None

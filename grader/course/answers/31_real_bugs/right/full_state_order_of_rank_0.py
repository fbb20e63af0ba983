# exercise: full_state
# diagnosis: none
import torch
import torch.distributed as dist


def full_state(shards, dst):
    """All ranks take the order of rank 0, which they have asked for."""
    rank, n = dist.get_rank(), dist.get_world_size()
    orders = [None] * n
    dist.all_gather_object(orders, list(shards))
    whole = {} if rank == dst else None
    for name in orders[0]:
        parts = [shards[name].clone() for _ in range(n)]
        if rank == dst:
            dist.gather(shards[name], parts, dst=dst)
            whole[name] = torch.cat(parts, dim=0)
        else:
            dist.gather(shards[name], dst=dst)
    return whole

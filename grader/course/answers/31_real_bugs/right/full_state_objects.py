# exercise: full_state
# diagnosis: none
import torch
import torch.distributed as dist


def full_state(shards, dst):
    """The names travel with the shards, so no order matters."""
    n = dist.get_world_size()
    states = [None] * n if dist.get_rank() == dst else None
    dist.gather_object(shards, states, dst=dst)
    if states is None:
        return None
    return {name: torch.cat([state[name] for state in states]) for name in shards}

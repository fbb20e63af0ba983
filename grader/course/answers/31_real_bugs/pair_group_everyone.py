"""There is one group for all pairs together. Each pair needs a group of its own: call new_group
once for every pair."""
# exercise: pair_group
# diagnosis: wrong_value
import torch.distributed as dist


def pair_group(pairs):
    members = [rank for pair in pairs for rank in pair]
    if not members:
        return None
    group = dist.new_group(members)
    return group if dist.get_rank() in members else None

"""What is returned is what the last call of new_group has returned. With
use_local_synchronization=True that is None on a rank that is not in the group. Keep a group only
where the rank is in its pair."""
# exercise: pair_group
# diagnosis: wrong_value
import torch.distributed as dist


def pair_group(pairs):
    group = None
    for pair in pairs:
        group = dist.new_group(pair, use_local_synchronization=True)
    return group

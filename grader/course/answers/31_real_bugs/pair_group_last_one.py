"""What is returned is the last group that was made. On a rank that is not in it, that is no group
at all (dist.GroupMember.NON_GROUP_MEMBER). Keep a group only where the rank is in its pair."""
# exercise: pair_group
# diagnosis: wrong_type
import torch.distributed as dist


def pair_group(pairs):
    group = None
    for pair in pairs:
        group = dist.new_group(pair)
    return group

# exercise: pair_group
# diagnosis: wrong_type
# hint: new_group returns −100 (dist.GroupMember.NON_GROUP_MEMBER) on a rank
# Returns NON_GROUP_MEMBER
import torch.distributed as dist


def pair_group(pairs):
    g = None
    for p in pairs:
        q = dist.new_group(list(p))
        if dist.get_rank() in p or g is None:
            g = q
    return g

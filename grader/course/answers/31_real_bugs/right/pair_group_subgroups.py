# exercise: pair_group
# diagnosis: none
import torch.distributed as dist


def pair_group(pairs):
    """PyTorch has a function for disjoint groups; it makes all of them on all ranks."""
    if not pairs:
        return None
    own, _ = dist.new_subgroups_by_enumeration([list(pair) for pair in pairs])
    return own

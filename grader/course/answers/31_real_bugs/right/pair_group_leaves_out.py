# exercise: pair_group
# diagnosis: none
import torch.distributed as dist


def pair_group(pairs):
    """A rank without a pair makes no group, which only its next group would show."""
    if not any(dist.get_rank() in pair for pair in pairs):
        return None
    own = None
    for pair in pairs:
        group = dist.new_group(pair)
        if dist.get_rank() in pair:
            own = group
    return own

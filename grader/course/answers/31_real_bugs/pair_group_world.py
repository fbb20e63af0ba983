"""A rank without a pair returns the group of all ranks. It should return None."""
# exercise: pair_group
# diagnosis: wrong_type
import torch.distributed as dist


def pair_group(pairs):
    own = dist.group.WORLD
    for pair in pairs:
        group = dist.new_group(pair)
        if dist.get_rank() in pair:
            own = group
    return own

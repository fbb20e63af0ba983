"""These groups are pairs of neighbours, whatever the list says. The members of a group are the two
ranks of one of the pairs."""
# exercise: pair_group
# diagnosis: wrong_type
import torch.distributed as dist


def pair_group(pairs):
    own = None
    for first in range(0, dist.get_world_size() - 1, 2):
        group = dist.new_group([first, first + 1])
        if dist.get_rank() in (first, first + 1):
            own = group
    return own

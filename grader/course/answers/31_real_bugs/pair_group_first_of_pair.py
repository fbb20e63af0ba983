"""Only the first rank of each pair returns the group. Its partner is a member as well."""
# exercise: pair_group
# diagnosis: wrong_value
# or: WHICH = 1
import torch.distributed as dist


#: Which of the two ranks gets the group.
WHICH = 0


def pair_group(pairs):
    own = None
    for pair in pairs:
        group = dist.new_group(pair)
        if dist.get_rank() == pair[WHICH]:
            own = group
    return own

"""A pair is taken for a range: the group also has the ranks between the two. Its members are the
two numbers, and no others."""
# exercise: pair_group
# diagnosis: wrong_value
import torch.distributed as dist


def pair_group(pairs):
    own = None
    for pair in pairs:
        members = list(range(min(pair), max(pair) + 1))
        group = dist.new_group(members)
        if dist.get_rank() in pair:
            own = group
    return own

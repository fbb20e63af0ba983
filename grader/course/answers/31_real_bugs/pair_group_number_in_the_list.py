"""A rank returns the group at its own number in the list. It should be the one of the pair that the
rank is in."""
# exercise: pair_group
# diagnosis: wrong_value
import torch.distributed as dist


def pair_group(pairs):
    groups = [dist.new_group(pair) for pair in pairs]
    rank = dist.get_rank()
    return groups[rank] if rank < len(groups) else None

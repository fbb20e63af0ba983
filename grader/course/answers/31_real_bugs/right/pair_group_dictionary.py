# exercise: pair_group
# diagnosis: none
import torch.distributed as dist


def pair_group(pairs):
    """All groups in an order of their own, the same on every rank, and a look into a dictionary."""
    groups = {}
    for first, second in sorted(pairs, key=max):
        groups[first] = groups[second] = dist.new_group([first, second])
    return groups.get(dist.get_rank())

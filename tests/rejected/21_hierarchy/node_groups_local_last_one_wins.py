# exercise: node_groups
# diagnosis: wrong_value
# hint: new_group returns None on a rank
import torch.distributed as dist


def node_groups(ranks_per_node):
    n = dist.get_world_size()
    for first in range(0, n, ranks_per_node):
        block = list(range(first, first + ranks_per_node))
        node = dist.new_group(block, use_local_synchronization=True)
    for place in range(ranks_per_node):
        rail = list(range(place, n, ranks_per_node))
        across = dist.new_group(rail, use_local_synchronization=True)
    return node, across

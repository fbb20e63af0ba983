# exercise: node_groups
# diagnosis: wrong_type
# hint: a later one has taken its place
import torch.distributed as dist


def node_groups(ranks_per_node):
    n = dist.get_world_size()
    for first in range(0, n, ranks_per_node):
        node = dist.new_group(list(range(first, first + ranks_per_node)))
    for place in range(ranks_per_node):
        across = dist.new_group(list(range(place, n, ranks_per_node)))
    return node, across

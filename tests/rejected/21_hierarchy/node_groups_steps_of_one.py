# exercise: node_groups
# diagnosis: exception
# hint: let first run in steps of ranks_per_node
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    for first in range(n):
        members = range(first, first + ranks_per_node)
        group = dist.new_group(list(members))
        if rank in members:
            node = group
    for place in range(ranks_per_node):
        members = range(place, n, ranks_per_node)
        group = dist.new_group(list(members))
        if rank in members:
            across = group
    return node, across

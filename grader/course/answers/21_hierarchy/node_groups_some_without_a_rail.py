# exercise: node_groups
# diagnosis: exception
# hint: rail is used here
# not: mine is used here
# The ranks of a rail are as far apart as there are nodes, so some ranks are in none.
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    for first in range(0, n, ranks_per_node):
        ranks = list(range(first, first + ranks_per_node))
        group = dist.new_group(ranks)
        if rank in ranks:
            mine = group
    for place in range(ranks_per_node):
        ranks = list(range(place, n, n // ranks_per_node))
        group = dist.new_group(ranks)
        if rank in ranks:
            rail = group
    return mine, rail

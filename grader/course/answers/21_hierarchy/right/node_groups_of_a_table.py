# exercise: node_groups
# diagnosis: none
# All ranks as a table with a row for each node; the columns come first, and the order of ranks in
# a list does not matter.
import torch
import torch.distributed as dist


def chosen(lists):
    made = [dist.new_group(ranks) for ranks in lists]
    return made[[dist.get_rank() in ranks for ranks in lists].index(True)]


def node_groups(ranks_per_node):
    table = torch.arange(dist.get_world_size()).view(-1, ranks_per_node)
    across = chosen(table.flip(0).T.tolist())
    return [chosen(table.tolist()), across]

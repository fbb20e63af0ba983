# exercise: node_groups
# diagnosis: wrong_type
# hint: a function without return gives None
# The groups are in global variables, and nothing is returned.
import torch.distributed as dist

node = across = None


def node_groups(ranks_per_node):
    global node, across
    n = dist.get_world_size()
    rails = [list(range(place, n, ranks_per_node)) for place in range(ranks_per_node)]
    node, _ = dist.new_subgroups(ranks_per_node)
    across, _ = dist.new_subgroups_by_enumeration(rails)

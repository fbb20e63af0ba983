# exercise: node_groups
# diagnosis: wrong_value
# hint: taken for the number of nodes
import torch.distributed as dist


def node_groups(ranks_per_node):
    n = dist.get_world_size()
    size = n // ranks_per_node
    rails = [list(range(place, n, size)) for place in range(size)]
    node, _ = dist.new_subgroups(size)
    across, _ = dist.new_subgroups_by_enumeration(rails)
    return node, across

# exercise: node_groups
# diagnosis: none
# torch's own helpers make all groups of one kind, and return a rank's own first.
import torch.distributed as dist


def node_groups(ranks_per_node):
    n = dist.get_world_size()
    rails = [list(range(place, n, ranks_per_node)) for place in range(ranks_per_node)]
    node, _ = dist.new_subgroups(ranks_per_node)
    across, _ = dist.new_subgroups_by_enumeration(rails)
    return node, across

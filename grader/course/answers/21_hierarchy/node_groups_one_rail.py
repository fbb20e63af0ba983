# exercise: node_groups
# diagnosis: wrong_type
# hint: a later one has taken its place
# Only the first rank of a node has the group of the leaders.
import torch.distributed as dist


def node_groups(ranks_per_node):
    node, _ = dist.new_subgroups(ranks_per_node)
    leaders = dist.new_group(list(range(0, dist.get_world_size(), ranks_per_node)))
    return node, leaders

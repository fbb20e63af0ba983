# exercise: node_groups
# diagnosis: wrong_value
# hint: One of the groups has all ranks
import torch.distributed as dist


def node_groups(ranks_per_node):
    node, _ = dist.new_subgroups(ranks_per_node)
    return node, dist.group.WORLD

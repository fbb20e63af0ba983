# exercise: node_groups
# diagnosis: deadlock
# hint: name the same members
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    node = rank // ranks_per_node
    ranks = list(range(node * ranks_per_node, (node + 1) * ranks_per_node))
    inside = dist.new_group(ranks, use_local_synchronization=True)
    # begins with the number of the node, and not with the place in it
    rail = list(range(node, n, ranks_per_node))
    return inside, dist.new_group(rail, use_local_synchronization=True)

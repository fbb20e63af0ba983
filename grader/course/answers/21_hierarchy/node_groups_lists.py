# exercise: node_groups
# diagnosis: wrong_type
# hint: Lists of ranks are not groups yet
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    first = rank // ranks_per_node * ranks_per_node
    node = list(range(first, first + ranks_per_node))
    return node, list(range(rank % ranks_per_node, n, ranks_per_node))

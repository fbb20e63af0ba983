# exercise: node_groups
# diagnosis: deadlock
# hint: the same kind of group first
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    first = rank // ranks_per_node * ranks_per_node
    block = list(range(first, first + ranks_per_node))
    rail = list(range(rank % ranks_per_node, n, ranks_per_node))
    if rank % 2:
        across = dist.new_group(rail, use_local_synchronization=True)
        node = dist.new_group(block, use_local_synchronization=True)
    else:
        node = dist.new_group(block, use_local_synchronization=True)
        across = dist.new_group(rail, use_local_synchronization=True)
    return node, across

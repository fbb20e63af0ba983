# exercise: node_groups
# diagnosis: wrong_value
# hint: dealt out to the nodes in turn
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    nodes = n // ranks_per_node
    node = dist.new_group(list(range(rank % nodes, n, nodes)), use_local_synchronization=True)
    first = rank // nodes * nodes
    across = dist.new_group(list(range(first, first + nodes)), use_local_synchronization=True)
    return node, across

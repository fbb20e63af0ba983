# exercise: node_groups
# diagnosis: order_mismatch
# hint: every rank makes the same groups in the same order
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    first = rank // ranks_per_node * ranks_per_node
    node = dist.new_group(list(range(first, first + ranks_per_node)))
    across = dist.new_group(list(range(rank % ranks_per_node, n, ranks_per_node)))
    return node, across

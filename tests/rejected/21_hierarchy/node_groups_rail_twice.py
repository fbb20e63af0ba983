# exercise: node_groups
# diagnosis: wrong_value
# hint: Both have the same place on all nodes
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    for place in range(ranks_per_node):
        group = dist.new_group(list(range(place, n, ranks_per_node)))
        if rank % ranks_per_node == place:
            mine = group
    return mine, mine

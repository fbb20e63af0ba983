# exercise: node_groups
# diagnosis: exception
# hint: / gives a float even where
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    blocks = [
        [i * ranks_per_node + j for j in range(ranks_per_node)] for i in range(n / ranks_per_node)
    ]
    rails = [list(range(i, n, ranks_per_node)) for i in range(ranks_per_node)]
    node, _ = dist.new_subgroups_by_enumeration(blocks)
    across, _ = dist.new_subgroups_by_enumeration(rails)
    return node, across

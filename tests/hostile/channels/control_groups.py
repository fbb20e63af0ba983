# promise: an honest rank can make groups where they are asked for
# exercise: node_groups
# verdict: passed
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, size = dist.get_rank(), dist.get_world_size()
    nodes = range(size // ranks_per_node)
    within = [
        dist.new_group([node * ranks_per_node + k for k in range(ranks_per_node)]) for node in nodes
    ]
    across = [
        dist.new_group([node * ranks_per_node + k for node in nodes])
        for k in range(ranks_per_node)
    ]
    return within[rank // ranks_per_node], across[rank % ranks_per_node]

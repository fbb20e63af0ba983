# exercise: node_groups
# diagnosis: none
# A rank makes only the two groups that it is in.
import torch.distributed as dist


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    node, place = divmod(rank, ranks_per_node)
    block = [node * ranks_per_node + i for i in range(ranks_per_node)]
    rail = [i * ranks_per_node + place for i in range(n // ranks_per_node)]
    return tuple(dist.new_group(ranks, use_local_synchronization=True) for ranks in (block, rail))

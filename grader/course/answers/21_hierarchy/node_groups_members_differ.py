"""Ranks wait for each other in new_group: with use_local_synchronization=True a group is made when
all its members have called. Do all of them name the same members, and does every rank make the
same kind of group first?"""
# exercise: node_groups
# diagnosis: deadlock


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    node = rank // ranks_per_node
    block = blocks_of(ranks_per_node)[node]
    inside = dist.new_group(block, use_local_synchronization=True)
    # begins with the number of the node, and not with the place in it
    rail = list(range(node, n, ranks_per_node))
    return inside, dist.new_group(rail, use_local_synchronization=True)

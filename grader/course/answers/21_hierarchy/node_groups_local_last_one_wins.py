"""With use_local_synchronization=True new_group returns None on a rank that is not in the group.
Keep a group only where rank is among its members."""
# exercise: node_groups
# diagnosis: wrong_type
# or: ACROSS = False

ACROSS = True


def node_groups(ranks_per_node):
    for block in blocks_of(ranks_per_node):
        node = dist.new_group(block, use_local_synchronization=True)
    for rail in rails_of(ranks_per_node) if ACROSS else ():
        across = dist.new_group(rail, use_local_synchronization=True)
    return node, across if ACROSS else made(rails_of(ranks_per_node))

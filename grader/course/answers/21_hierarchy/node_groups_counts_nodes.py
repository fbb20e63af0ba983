"""ranks_per_node is taken for the number of nodes. It is the size of a node; there are n //
ranks_per_node nodes."""
# exercise: node_groups
# diagnosis: wrong_value


def node_groups(ranks_per_node):
    size = dist.get_world_size() // ranks_per_node
    return made(blocks_of(size)), made(rails_of(size))

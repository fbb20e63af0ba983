"""Both are the group of the node. The second has the ranks with the same place on each node:
range(rank % ranks_per_node, n, ranks_per_node)."""
# exercise: node_groups
# diagnosis: wrong_value


def node_groups(ranks_per_node):
    node = made(blocks_of(ranks_per_node))
    return node, node

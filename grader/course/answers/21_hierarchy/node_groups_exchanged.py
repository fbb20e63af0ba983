"""The two groups are swapped: the one of the node comes first."""
# exercise: node_groups
# diagnosis: wrong_value


def node_groups(ranks_per_node):
    return made(rails_of(ranks_per_node)), made(blocks_of(ranks_per_node))

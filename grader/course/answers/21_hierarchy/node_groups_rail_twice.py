"""Both have the same place on all nodes. The first has the ranks of one node: ranks_per_node of
them, one after the other."""
# exercise: node_groups
# diagnosis: wrong_value


def node_groups(ranks_per_node):
    across = made(rails_of(ranks_per_node))
    return across, across

"""One of the groups has all ranks. That is so for nodes of 1 or of n ranks only; otherwise each of
the two has a part of them."""
# exercise: node_groups
# diagnosis: wrong_value
# or: NODE = True
# or: ACROSS = False; NODE = True

NODE = False
ACROSS = True


def node_groups(ranks_per_node):
    node, across = made(blocks_of(ranks_per_node)), made(rails_of(ranks_per_node))
    return dist.group.WORLD if NODE else node, dist.group.WORLD if ACROSS else across

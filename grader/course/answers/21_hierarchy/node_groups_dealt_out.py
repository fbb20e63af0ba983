"""Ranks are dealt out to the nodes in turn here. They fill one node after the other: the node of
rank r is r // ranks_per_node, its place there r % ranks_per_node."""
# exercise: node_groups
# diagnosis: wrong_value


def node_groups(ranks_per_node):
    nodes = dist.get_world_size() // ranks_per_node
    return made(rails_of(nodes)), made(blocks_of(nodes))

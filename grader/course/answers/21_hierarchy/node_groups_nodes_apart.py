"""In your second groups the ranks are as far apart as there are nodes. The same place in the next
node is ranks_per_node further on: range(place, n, ranks_per_node).
"""
# exercise: node_groups
# diagnosis: wrong_value


def node_groups(ranks_per_node):
    nodes = dist.get_world_size() // ranks_per_node
    return made(blocks_of(ranks_per_node)), made(rails_of(nodes))

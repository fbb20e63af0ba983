"""A group may have only ranks that exist: 0 to n − 1. With range(first, first + ranks_per_node)
let first run in steps of ranks_per_node."""
# exercise: node_groups
# diagnosis: exception


def node_groups(ranks_per_node):
    n = dist.get_world_size()
    blocks = [list(range(first, first + ranks_per_node)) for first in range(n)]
    return made(blocks), made(rails_of(ranks_per_node))

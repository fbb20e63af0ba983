"""/ gives a float even where nothing is left over: use // for numbers of ranks and nodes."""
# exercise: node_groups
# diagnosis: exception
# or: IN_RANGE = False

IN_RANGE = True


def node_groups(ranks_per_node):
    rank, n = dist.get_rank(), dist.get_world_size()
    nodes = n / ranks_per_node
    if IN_RANGE:
        blocks = [list(range(i * ranks_per_node, (i + 1) * ranks_per_node)) for i in range(nodes)]
    else:
        first = (rank - rank % ranks_per_node) / 1
        blocks = [[first + i for i in range(ranks_per_node)]]
    return made(blocks), made(rails_of(ranks_per_node))

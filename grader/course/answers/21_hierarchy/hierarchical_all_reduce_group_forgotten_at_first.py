"""Without group=… a collective is one of all ranks, and this one is called with what fits a node:
say group=node."""
# exercise: hierarchical_all_reduce
# diagnosis: exception
# or: LISTS = True

LISTS = False


def reduce_in_node(mine, padded, op, node):
    if LISTS:
        dist.reduce_scatter(mine, list(padded.chunk(dist.get_world_size(node))), op=summed(op))
    else:
        dist.reduce_scatter_tensor(mine, padded, op=summed(op))

"""Without group=… a collective is one of all ranks, and this one is called with what fits a node:
say group=node."""
# exercise: hierarchical_all_reduce
# diagnosis: exception
# or: LISTS = True

LISTS = False


def gather_in_node(padded, mine, node):
    if LISTS:
        dist.all_gather(list(padded.chunk(dist.get_world_size(node))), mine)
    else:
        dist.all_gather_into_tensor(padded, mine)

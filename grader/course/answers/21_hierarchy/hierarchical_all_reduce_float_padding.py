"""Buffers for shares and padding need x's dtype: x.new_zeros(size) keeps it."""
# exercise: hierarchical_all_reduce
# diagnosis: exception
# or: MINE = "x's"; PADDED = "float"

MINE = "float"
PADDED = "x's"


def hierarchical_all_reduce(x, op, ranks_per_node):
    node, across = node_groups(ranks_per_node)
    padded = padded_to(x if PADDED == "x's" else x.float(), ranks_per_node)
    size = len(padded) // ranks_per_node
    mine = torch.empty(size) if MINE == "float" else x.new_empty(size)
    reduce_in_node(mine, padded, op, node)
    reduce_across(mine, op, node, across)
    divide(op, mine, ranks_per_node)
    gather_in_node(padded, mine, node)
    x.copy_(padded[: x.numel()].view_as(x))

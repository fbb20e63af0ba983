"""Every rank has its own share of the result in x, and no other. The last step is missing, which
is the all_gather in the node."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value

def hierarchical_all_reduce(x, op, ranks_per_node):
    node, across = node_groups(ranks_per_node)
    place, flat = dist.get_rank() % ranks_per_node, x.view(-1)
    padded = padded_to(x, ranks_per_node)
    mine = padded.new_empty(len(padded) // ranks_per_node)
    reduce_in_node(mine, padded, op, node)
    reduce_across(mine, op, node, across)
    divide(op, mine, ranks_per_node)
    first = place * len(mine)
    flat[first : first + len(mine)] = mine[: max(0, len(flat) - first)]

"""x is unchanged on every rank. The result is in another tensor: write it back at the end, as in
x.copy_(result)."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value


def hierarchical_all_reduce(x, op, ranks_per_node):
    x = result_of(x, op, ranks_per_node)

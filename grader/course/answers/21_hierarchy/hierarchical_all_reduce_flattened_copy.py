"""A matrix is unchanged, and only a vector is reduced: what you reduced was a copy of the matrix.
Write the result back, as in x.copy_(result)."""
# exercise: hierarchical_all_reduce
# diagnosis: wrong_value


def hierarchical_all_reduce(x, op, ranks_per_node):
    x = x.clone().flatten() if x.dim() == 2 else x
    x.copy_(result_of(x, op, ranks_per_node))

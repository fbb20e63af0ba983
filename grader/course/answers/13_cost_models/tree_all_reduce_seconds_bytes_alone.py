"""That is the cost of the bytes alone. Each round costs alpha as well."""
# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1).bit_length() * nbytes * beta

"""That is one way only. The reduce goes up the tree, and the broadcast comes down again."""
# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return (n - 1).bit_length() * (alpha + nbytes * beta)

"""Here the messages get shorter from round to round. That is another, better algorithm; in this
one every message is the whole tensor.
"""
# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    levels = (n - 1).bit_length()
    return 2 * levels * alpha + 2 * (n - 1) / n * nbytes * beta

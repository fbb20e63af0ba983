"""That is what a root takes if it sends to one rank after another: 2(n − 1) messages. On a tree,
every rank that has the tensor helps to send it: 2⌈log₂ n⌉.
"""
# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    return 2 * (n - 1) * (alpha + nbytes * beta)

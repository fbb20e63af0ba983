"""n may be 1, and then n − 1 is 0, which has no logarithm."""
# exercise: tree_all_reduce_seconds
# diagnosis: exception


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    levels = int(math.log2(n - 1)) + 1  # the digits of n - 1 in base 2
    return 2 * levels * (alpha + nbytes * beta)

"""Rounds are whole: 5 ranks take 3 of them, not 2.32. Round log₂ n up."""
# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    levels = math.log2(n)
    return 2 * levels * (alpha + nbytes * beta)

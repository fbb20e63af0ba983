"""One round too many where n is a power of two: 4 ranks take 2 rounds and not 3. Neither
n.bit_length() nor int(log₂ n) + 1 is ⌈log₂ n⌉ there; (n - 1).bit_length() is.
"""
# exercise: tree_all_reduce_seconds
# diagnosis: wrong_value
# not: rounded down
# or: ALONE = 0

ALONE = 1


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    levels = n.bit_length() if n > 1 else ALONE
    return 2 * levels * (alpha + nbytes * beta)

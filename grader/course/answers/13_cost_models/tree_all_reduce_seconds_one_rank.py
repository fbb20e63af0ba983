# exercise: tree_all_reduce_seconds
# diagnosis: exception
# hint: n may be 1
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    rounds = len(bin(n - 1).lstrip("0b"))
    per_round = alpha + nbytes * beta
    return sum([per_round] * 2 * rounds) / rounds * rounds

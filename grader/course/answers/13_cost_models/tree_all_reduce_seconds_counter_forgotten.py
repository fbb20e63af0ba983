# exercise: tree_all_reduce_seconds
# diagnosis: timeout
# hint: What changes each time round
# not: power of two | reached
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    rounds, have = 0, 1
    while have < n:
        rounds += 1
    return 2 * rounds * (alpha + nbytes * beta)

# exercise: tree_all_reduce_seconds
# diagnosis: timeout
# hint: The loop ends only where n is a power of two
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    rounds, reached = 0, 1
    while reached != n:
        reached *= 2
        rounds += 1
    return 2 * rounds * (alpha + nbytes * beta)

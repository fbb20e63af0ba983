# exercise: tree_all_reduce_seconds
# diagnosis: none
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    rounds, reached = 0, 1
    while reached < n:
        reached *= 2
        rounds += 1
    reduce = broadcast = rounds * (alpha + beta * nbytes)
    return reduce + broadcast

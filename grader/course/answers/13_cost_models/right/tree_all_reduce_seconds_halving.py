# exercise: tree_all_reduce_seconds
# diagnosis: none
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    if n == 1:
        return 0
    half = (n + 1) // 2  # half of the ranks are left after a round
    return 2 * (alpha + beta * nbytes) + tree_all_reduce_seconds(half, nbytes, alpha, beta)

# exercise: tree_all_reduce_seconds
# diagnosis: wrong_type
# hint: never returns anything
def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    print(2 * (n - 1).bit_length() * (alpha + nbytes * beta))

"""That is 0, which is what a group of one costs. The argument n says how many ranks there are, and
not dist.get_world_size(), which is 1 where your function runs. And divide with /: (n - 1) // n is
0 for every n.
"""
# exercise: ring_all_reduce_seconds, tree_all_reduce_seconds
# diagnosis: wrong_value
# or: WAY = "divides with //"

WAY = "asks for the world"


def ring_all_reduce_seconds(n, nbytes, alpha, beta):
    if WAY == "divides with //":
        return 2 * ((n - 1) // n) * (n * alpha + nbytes * beta)
    n = dist.get_world_size()
    return 2 * (n - 1) * (alpha + nbytes / n * beta)


def tree_all_reduce_seconds(n, nbytes, alpha, beta):
    n = dist.get_world_size()
    return 2 * (n - 1).bit_length() * (alpha + nbytes * beta)

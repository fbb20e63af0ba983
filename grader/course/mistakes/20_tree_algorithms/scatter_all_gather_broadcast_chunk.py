"""chunk(n) may give fewer than n shares, and here it did: use tensor_split(n), which always gives
n, some of them empty if it must be."""
# exercise: scatter_all_gather_broadcast
# diagnosis: exception
# or: BY = "rank"

BY = "place"


def shares_of(x, n):
    return x.view(-1).chunk(n)

"""Every rank ends with rank 0's x. The source is src, and it is not always rank 0."""
# exercise: pipelined_broadcast, scatter_all_gather_broadcast
# diagnosis: wrong_value


def place_of(rank, src, n):
    return rank


def scatter_all_gather_broadcast(x, src):
    n = dist.get_world_size()
    shares = shares_of(x, n)
    scatter(shares, 0)
    all_gather(shares, 0, n - 1)

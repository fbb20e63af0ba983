"""Every rank ends with the x of rank −src, modulo n. The place of a rank after src is (rank − src)
% n, which is 0 for src itself."""
# exercise: pipelined_broadcast, scatter_all_gather_broadcast
# diagnosis: wrong_value


def place_of(rank, src, n):
    return (rank + src) % n


def scatter_all_gather_broadcast(x, src):
    n = dist.get_world_size()
    shares = shares_of(x, n)
    first = -src % n
    scatter(shares, first)
    all_gather(shares, first, n - 1)


def number_of(rank, src, n):
    return (rank - src) % n

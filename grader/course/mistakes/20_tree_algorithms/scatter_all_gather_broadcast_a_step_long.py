"""The all-gather has a step too many: after n − 1 steps every rank has all n shares."""
# exercise: scatter_all_gather_broadcast
# diagnosis: too_many_bytes
# earns: 0.5


def scatter_all_gather_broadcast(x, src):
    n = dist.get_world_size()
    shares = shares_of(x, n)
    scatter(shares, src)
    if n > 1:
        all_gather(shares, src, n)

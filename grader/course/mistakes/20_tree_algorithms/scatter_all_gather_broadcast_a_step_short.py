"""The all-gather is a step short: each rank lacks the share that would come last. There are n − 1
steps."""
# exercise: scatter_all_gather_broadcast
# diagnosis: wrong_value
# or: BY = "rank"
# or: CUT = "even"
# or: BY = "rank"; CUT = "even"

BY = "place"
CUT = "tensor_split"


def scatter_all_gather_broadcast(x, src):
    n = dist.get_world_size()
    shares = shares_of(x, n)
    scatter(shares, src)
    all_gather(shares, src, n - 2)

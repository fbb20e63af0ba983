"""The scatter and the all-gather count the shares in two ways, one by rank and the other by the
place after src. Both ways work, if it is the same in both phases."""
# exercise: scatter_all_gather_broadcast
# diagnosis: wrong_value
# or: SCATTER = "rank"; RING = "place"

SCATTER = "place"
RING = "rank"


def scatter_all_gather_broadcast(x, src):
    global BY
    n = dist.get_world_size()
    shares = shares_of(x, n)
    BY = SCATTER
    scatter(shares, src)
    BY = RING
    all_gather(shares, src, n - 1)

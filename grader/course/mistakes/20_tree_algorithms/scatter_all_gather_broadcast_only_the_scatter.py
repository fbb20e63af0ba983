"""Only the scatter is there: each rank has one share of src's x. The all-gather is still to come.
"""
# exercise: scatter_all_gather_broadcast
# diagnosis: wrong_value
# or: BY = "rank"
# or: CUT = "even"
# or: BY = "rank"; CUT = "even"

BY = "place"
CUT = "tensor_split"


def scatter_all_gather_broadcast(x, src):
    scatter(shares_of(x, dist.get_world_size()), src)

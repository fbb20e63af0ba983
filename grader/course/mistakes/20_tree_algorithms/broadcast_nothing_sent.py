"""Nothing was sent: x is unchanged on every rank."""
# exercise: pipelined_broadcast, scatter_all_gather_broadcast
# diagnosis: wrong_value


def pipelined_broadcast(x, src, pieces):
    pieces_of(x, pieces)


def scatter_all_gather_broadcast(x, src):
    shares_of(x, dist.get_world_size())

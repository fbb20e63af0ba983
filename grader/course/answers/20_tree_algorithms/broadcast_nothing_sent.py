"""Nothing was sent: x is unchanged on every rank."""
# exercise: pipelined_broadcast, scatter_all_gather_broadcast
# diagnosis: wrong_value


def pipelined_broadcast(x, src, pieces):
    x.view(-1).tensor_split(pieces)


def scatter_all_gather_broadcast(x, src):
    x.view(-1).tensor_split(dist.get_world_size())

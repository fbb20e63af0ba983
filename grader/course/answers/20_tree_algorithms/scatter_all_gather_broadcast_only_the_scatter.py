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
    rank, n = dist.get_rank(), dist.get_world_size()
    first = src if BY == "place" else 0
    v = (rank - first) % n
    shares = x.view(-1).tensor_split(n)
    if CUT == "even":
        edges = [i * x.numel() // n for i in range(n + 1)]
        shares = [x.view(-1)[edges[i] : edges[i + 1]] for i in range(n)]
    if rank == src:
        for other in range(n):
            if other != src:
                dist.send(shares[(other - first) % n], other)
    else:
        dist.recv(shares[v], src)

"""Shares of ⌈len/n⌉ elements, as chunk and split cut them, may be fewer than n, and here they are: use
tensor_split(n), which always gives n, some of them empty if it must be."""
# exercise: scatter_all_gather_broadcast
# diagnosis: exception
# or: BY = "rank"

BY = "place"


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    first = src if BY == "place" else 0
    v = (rank - first) % n
    shares = x.view(-1).chunk(n)
    if rank == src:
        for other in range(n):
            if other != src:
                dist.send(shares[(other - first) % n], other)
    else:
        dist.recv(shares[v], src)
    for s in range(n - 1):
        request = dist.isend(shares[(v - s) % n], (rank + 1) % n)
        dist.recv(shares[(v - s - 1) % n], (rank - 1) % n)
        request.wait()

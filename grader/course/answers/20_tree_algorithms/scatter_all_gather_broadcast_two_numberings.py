"""The scatter and the all-gather count the shares in two ways, one by rank and the other by the
place after src. Both ways work, if it is the same in both phases."""
# exercise: scatter_all_gather_broadcast
# diagnosis: wrong_value
# or: SCATTER = "rank"

SCATTER = "place"


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    first = src if SCATTER == "place" else 0
    shares = x.view(-1).tensor_split(n)
    if rank == src:
        for other in range(n):
            if other != src:
                dist.send(shares[(other - first) % n], other)
    else:
        dist.recv(shares[(rank - first) % n], src)
    v = rank if SCATTER == "place" else (rank - src) % n
    for s in range(n - 1):
        request = dist.isend(shares[(v - s) % n], (rank + 1) % n)
        dist.recv(shares[(v - s - 1) % n], (rank - 1) % n)
        request.wait()

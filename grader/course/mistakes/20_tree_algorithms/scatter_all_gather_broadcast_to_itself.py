"""src sends a share to itself, and that is refused. Its own is in place already: leave it out."""
# exercise: scatter_all_gather_broadcast
# diagnosis: exception
# or: BY = "rank"

BY = "place"


def scatter(shares, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != src:
        dist.recv(shares[number_of(rank, src, n)], src)
        return
    for place in range(n):
        other = (src + place) % n if BY == "place" else place
        dist.send(shares[place], other)

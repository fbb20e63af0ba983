"""The buffer is as long as this rank's own share, but the shares are not all of one size: it has
to be as long as the share that comes, or be that share itself."""
# exercise: scatter_all_gather_broadcast
# diagnosis: size_mismatch
# or: BY = "rank"

BY = "place"


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    first = src if BY == "place" else 0
    v = (rank - first) % n
    shares = x.view(-1).tensor_split(n)
    if rank == src:
        for other in range(n):
            if other != src:
                dist.send(shares[(other - first) % n], other)
    else:
        dist.recv(shares[v], src)
    for s in range(n - 1):
        request = dist.isend(shares[(v - s) % n], (rank + 1) % n)
        came = torch.empty_like(shares[v])
        dist.recv(came, (rank - 1) % n)
        request.wait()
        shares[(v - s - 1) % n].copy_(came)

"""The buffer is as long as this rank's own share, but the shares are not all of one size: it has
to be as long as the share that comes, or be that share itself."""
# exercise: scatter_all_gather_broadcast
# diagnosis: size_mismatch
# or: BY = "rank"

BY = "place"


def all_gather(shares, src, steps):
    rank, n = dist.get_rank(), dist.get_world_size()
    v = number_of(rank, src, n)
    for s in range(steps):
        request = dist.isend(shares[(v - s) % n], (rank + 1) % n)
        came = torch.empty_like(shares[v])
        dist.recv(came, (rank - 1) % n)
        request.wait()
        shares[(v - s - 1) % n].copy_(came)

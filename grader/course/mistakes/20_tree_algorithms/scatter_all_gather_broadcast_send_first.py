"""Every rank sends and none receives: a blocking send waits for its receive. Start with request =
dist.isend(...), then recv, then request.wait()."""
# exercise: scatter_all_gather_broadcast
# diagnosis: deadlock


def all_gather(shares, src, steps):
    rank, n = dist.get_rank(), dist.get_world_size()
    v = number_of(rank, src, n)
    for s in range(steps):
        dist.send(shares[(v - s) % n], (rank + 1) % n)
        dist.recv(shares[(v - s - 1) % n], (rank - 1) % n)

"""Every rank waits until its message is received, and none receives. Start with request =
dist.isend(...), then recv, and only then request.wait()."""
# exercise: scatter_all_gather_broadcast
# diagnosis: deadlock
# or: STARTS = True

STARTS = False


def all_gather(shares, src, steps):
    rank, n = dist.get_rank(), dist.get_world_size()
    v = number_of(rank, src, n)
    for s in range(steps):
        if STARTS:
            dist.isend(shares[(v - s) % n], (rank + 1) % n).wait()
        else:
            dist.send(shares[(v - s) % n], (rank + 1) % n)
        dist.recv(shares[(v - s - 1) % n], (rank - 1) % n)

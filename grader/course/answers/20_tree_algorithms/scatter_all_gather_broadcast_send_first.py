"""Every rank waits until its message is received, and none receives. Start with request =
dist.isend(...), then recv, and only then request.wait()."""
# exercise: scatter_all_gather_broadcast
# diagnosis: deadlock
# or: STARTS = True

STARTS = False


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    v = (rank - src) % n
    shares = x.view(-1).tensor_split(n)
    if rank == src:
        for place in range(1, n):
            dist.send(shares[place], (src + place) % n)
    else:
        dist.recv(shares[v], src)
    for s in range(n - 1):
        if STARTS:
            dist.isend(shares[(v - s) % n], (rank + 1) % n).wait()
        else:
            dist.send(shares[(v - s) % n], (rank + 1) % n)
        dist.recv(shares[(v - s - 1) % n], (rank - 1) % n)

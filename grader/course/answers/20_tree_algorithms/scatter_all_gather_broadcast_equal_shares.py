"""The last elements do not arrive: the length is not divisible by n, and shares of equal size
leave some over. x.view(-1).tensor_split(n) leaves none."""
# exercise: scatter_all_gather_broadcast
# diagnosis: wrong_value


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    v = (rank - src) % n
    size = x.numel() // n
    shares = x.view(-1)[: n * size].tensor_split(n)
    if rank == src:
        for place in range(1, n):
            dist.send(shares[place], (src + place) % n)
    else:
        dist.recv(shares[v], src)
    for s in range(n - 1):
        request = dist.isend(shares[(v - s) % n], (rank + 1) % n)
        dist.recv(shares[(v - s - 1) % n], (rank - 1) % n)
        request.wait()

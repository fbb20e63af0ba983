"""x has rows and columns here, and your shares are rows, which cannot be shared out evenly among
more ranks. Cut elements: x.view(-1).tensor_split(n)."""
# exercise: scatter_all_gather_broadcast
# diagnosis: too_many_bytes
# earns: 0.5


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    v = (rank - src) % n
    shares = x.tensor_split(n)
    if rank == src:
        for place in range(1, n):
            dist.send(shares[place], (src + place) % n)
    else:
        dist.recv(shares[v], src)
    for s in range(n - 1):
        request = dist.isend(shares[(v - s) % n], (rank + 1) % n)
        dist.recv(shares[(v - s - 1) % n], (rank - 1) % n)
        request.wait()

"""x is unchanged on every rank, although messages were exchanged. Receive into views of x:
x.view(-1).tensor_split(...) gives some, clone() and cat() make new tensors."""
# exercise: pipelined_broadcast, scatter_all_gather_broadcast
# diagnosis: wrong_value


def pipelined_broadcast(x, src, pieces):
    rank, n = dist.get_rank(), dist.get_world_size()
    place = (rank - src) % n
    requests = []
    for piece in x.clone().view(-1).tensor_split(max(1, min(pieces, x.numel()))):
        if place > 0:
            dist.recv(piece, (rank - 1) % n)
        if place < n - 1:
            requests.append(dist.isend(piece, (rank + 1) % n))
    for request in requests:
        request.wait()


def scatter_all_gather_broadcast(x, src):
    rank, n = dist.get_rank(), dist.get_world_size()
    v = (rank - src) % n
    shares = x.clone().view(-1).tensor_split(n)
    if rank == src:
        for place in range(1, n):
            dist.send(shares[place], (src + place) % n)
    else:
        dist.recv(shares[v], src)
    for s in range(n - 1):
        request = dist.isend(shares[(v - s) % n], (rank + 1) % n)
        dist.recv(shares[(v - s - 1) % n], (rank - 1) % n)
        request.wait()

"""A product is in the place of another rank's piece. Pieces that go to the right arrive from the
left: after s steps you have that of rank (r − s) mod n."""
# exercise: gather_matmul
# diagnosis: wrong_value
# alike: messages
# or: SIGN = -1; OFF = 1
# or: SIGN = -1; OFF = -1

SIGN = 1
OFF = 0


def gather_matmul(x_shard, multiply):
    rank, n = dist.get_rank(), dist.get_world_size()
    products, piece = [None] * n, x_shard
    for step in range(n):
        moving, came = [], torch.empty_like(piece)
        if step < n - 1:
            moving.append(dist.isend(piece, (rank + 1) % n))
            moving.append(dist.irecv(came, (rank - 1) % n))
        products[(rank + SIGN * step + OFF) % n] = multiply(piece)
        for request in moving:
            request.wait()
        piece = came
    return torch.cat(products)

"""Each rank begins with its own piece, and the products stay in the order in which the pieces
came. They belong in the order of the ranks: after s steps you have the piece of rank (r − s) mod
n, if pieces go to the right."""
# exercise: gather_matmul
# diagnosis: wrong_value
# alike: messages
# or: RIGHT = -1

RIGHT = 1


def gather_matmul(x_shard, multiply):
    rank, n = dist.get_rank(), dist.get_world_size()
    products, piece = [None] * n, x_shard
    for step in range(n):
        moving, came = [], torch.empty_like(piece)
        if step < n - 1:
            moving.append(dist.isend(piece, (rank + RIGHT) % n))
            moving.append(dist.irecv(came, (rank - RIGHT) % n))
        products[step] = multiply(piece)
        for request in moving:
            request.wait()
        piece = came
    return torch.cat(products)

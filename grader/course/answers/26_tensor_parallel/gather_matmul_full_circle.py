"""Products and transfers overlap, but there is one transfer too many: after n − 1 steps every
piece has been everywhere, and the last one is multiplied without a message beside it."""
# exercise: gather_matmul
# diagnosis: too_many_bytes
import torch
import torch.distributed as dist


def gather_matmul(x_shard, multiply):
    rank, n = dist.get_rank(), dist.get_world_size()
    products, piece = [None] * n, x_shard
    for step in range(n):
        moving, came = [], torch.empty_like(piece)
        if n > 1:
            moving.append(dist.isend(piece, (rank + 1) % n))
            moving.append(dist.irecv(came, (rank - 1) % n))
        products[(rank - step) % n] = multiply(piece)
        for request in moving:
            request.wait()
        piece = came
    return torch.cat(products)

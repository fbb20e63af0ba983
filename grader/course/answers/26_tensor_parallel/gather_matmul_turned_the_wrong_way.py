"""All products are there, in a list that is turned the wrong way. Pieces that go to the left arrive from
the right: what you multiply in step s is that of rank (rank + s) % n, and belongs in that place.
"""
# exercise: gather_matmul
# diagnosis: wrong_value
# alike: messages
import torch
import torch.distributed as dist


def gather_matmul(x_shard, multiply):
    rank, n = dist.get_rank(), dist.get_world_size()
    products, piece = [], x_shard
    for step in range(n):
        moving, came = [], torch.empty_like(piece)
        if step < n - 1:
            moving.append(dist.isend(piece, (rank - 1) % n))
            moving.append(dist.irecv(came, (rank + 1) % n))
        products.append(multiply(piece))
        for request in moving:
            request.wait()
        piece = came
    return torch.cat(products[rank:] + products[:rank])

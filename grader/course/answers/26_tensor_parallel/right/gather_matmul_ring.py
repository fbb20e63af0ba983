# exercise: gather_matmul
# diagnosis: none
import torch
import torch.distributed as dist


def gather_matmul(x_shard, multiply):
    rank, n = dist.get_rank(), dist.get_world_size()
    products, piece = [None] * n, x_shard
    for step in range(n):
        moving, came = [], torch.empty_like(piece)
        if step < n - 1:
            moving.append(dist.isend(piece, (rank + 1) % n))
            moving.append(dist.irecv(came, (rank - 1) % n))
        products[(rank - step) % n] = multiply(piece)
        for request in moving:
            request.wait()
        piece = came
    return torch.cat(products)

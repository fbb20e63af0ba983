# exercise: gather_matmul
# diagnosis: too_many_seconds
# hint: not all that could be
import torch
import torch.distributed as dist


def gather_matmul(x_shard, multiply):
    rank, n = dist.get_rank(), dist.get_world_size()
    products, piece = [None] * n, x_shard
    products[rank] = multiply(piece)
    last = None
    for step in range(n):
        moving, came = [], torch.empty_like(piece)
        if step < n - 1:
            moving.append(dist.isend(piece, (rank + 1) % n))
            moving.append(dist.irecv(came, (rank - 1) % n))
        if last is not None:
            products[last[0]] = multiply(last[1])
        for request in moving:
            request.wait()
        piece = came
        last = ((rank - step - 1) % n, came)
    return torch.cat(products)

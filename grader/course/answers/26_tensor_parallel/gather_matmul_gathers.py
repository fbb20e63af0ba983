# exercise: gather_matmul
# diagnosis: forbidden_call
# hint: Only messages between neighbours
import torch
import torch.distributed as dist


def gather_matmul(x_shard, multiply):
    rank, n = dist.get_rank(), dist.get_world_size()
    products, piece = [None] * n, x_shard
    pieces = [torch.empty_like(x_shard) for _ in range(n)]
    dist.all_gather(pieces, x_shard)
    return torch.cat([multiply(piece) for piece in pieces])
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

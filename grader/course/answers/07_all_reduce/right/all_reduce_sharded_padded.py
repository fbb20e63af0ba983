# exercise: all_reduce_sharded
# diagnosis: none
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    size = -(-x.numel() // n)
    padded = x.new_zeros(n * size)
    padded[: x.numel()] = x.flatten()
    piece = x.new_empty(size)
    if op == dist.ReduceOp.AVG:
        dist.reduce_scatter_tensor(piece, padded)
        piece /= n
    else:
        dist.reduce_scatter_tensor(piece, padded, op=op)
    dist.all_gather_into_tensor(padded, piece)
    x.copy_(padded[: x.numel()].view_as(x))

# exercise: all_reduce_sharded
# diagnosis: wrong_type
# hint: in place
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    n, average = dist.get_world_size(), op == dist.ReduceOp.AVG
    size = -(-x.numel() // n)
    padded = x.new_zeros(n * size)
    padded[: x.numel()] = x.flatten()
    piece = x.new_empty(size)
    dist.reduce_scatter_tensor(piece, padded, op=dist.ReduceOp.SUM if average else op)
    if average:
        piece /= n
    dist.all_gather_into_tensor(padded, piece)
    return padded[: x.numel()].view_as(x)

# exercise: all_reduce_sharded
# diagnosis: deadlock
# hint: whose piece is empty
# Ranks without a piece of their own go home early.
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    average = op == dist.ReduceOp.AVG
    pieces = list(x.flatten().tensor_split(n))
    size = len(pieces[0])
    if len(pieces[rank]) == 0:
        return
    padded = x.new_zeros(n * size)
    padded[: x.numel()] = x.flatten()
    piece = x.new_empty(size)
    dist.reduce_scatter_tensor(piece, padded, op=dist.ReduceOp.SUM if average else op)
    if average:
        piece /= n
    dist.all_gather_into_tensor(padded, piece)
    x.copy_(padded[: x.numel()].view_as(x))

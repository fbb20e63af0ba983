# exercise: all_reduce_sharded
# diagnosis: wrong_value
# hint: only a vector is reduced
# A matrix is flattened into a copy, and stays as it was.
import torch
import torch.distributed as dist


def sum_up(flat, op):
    n = dist.get_world_size()
    extra = -len(flat) % n
    padded = torch.cat([flat, flat.new_zeros(extra)])
    piece = padded.new_empty(len(padded) // n)
    dist.reduce_scatter_tensor(piece, padded, dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op)
    if op == dist.ReduceOp.AVG:
        piece /= n
    dist.all_gather_into_tensor(padded, piece)
    flat.copy_(padded[: len(flat)])


def all_reduce_sharded(x, op):
    # a vector is reduced where it is, a matrix in a copy
    sum_up(x if x.dim() == 1 else x.t().reshape(-1), op)

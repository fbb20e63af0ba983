# exercise: all_reduce_sharded
# diagnosis: none
# The part that n divides first, then the few elements left over, one to a rank.
import torch
import torch.distributed as dist


def even(flat, op):
    n = dist.get_world_size()
    piece = flat.new_empty(len(flat) // n)
    dist.reduce_scatter_tensor(piece, flat, op)
    dist.all_gather_into_tensor(flat, piece)


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    how = dist.ReduceOp.SUM if op == dist.ReduceOp.AVG else op
    flat = x.flatten().clone()
    kept = len(flat) // n * n
    if kept:
        even(flat[:kept], how)
    if kept < len(flat):
        tail = torch.cat([flat[kept:], flat.new_zeros(n - len(flat) + kept)])
        even(tail, how)
        flat[kept:] = tail[: len(flat) - kept]
    if op == dist.ReduceOp.AVG:
        flat /= n
    x.copy_(flat.reshape(x.shape))

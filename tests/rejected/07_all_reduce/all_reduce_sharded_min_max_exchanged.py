# exercise: all_reduce_sharded
# diagnosis: wrong_value
# hint: MIN and MAX are swapped
import torch
import torch.distributed as dist


R = dist.ReduceOp
INSTEAD = [(R.AVG, R.SUM), (R.MIN, R.MAX), (R.MAX, R.MIN)]


def all_reduce_sharded(x, op):
    n, average = dist.get_world_size(), op == R.AVG
    op = next((other for known, other in INSTEAD if op == known), op)
    size = -(-x.numel() // n)
    padded = x.new_zeros(n * size)
    padded[: x.numel()] = x.flatten()
    piece = x.new_empty(size)
    dist.reduce_scatter_tensor(piece, padded, op=op)
    if average:
        piece /= n
    dist.all_gather_into_tensor(padded, piece)
    x.copy_(padded[: x.numel()].view_as(x))

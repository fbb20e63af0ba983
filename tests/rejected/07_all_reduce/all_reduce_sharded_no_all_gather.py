# exercise: all_reduce_sharded
# diagnosis: wrong_value
# hint: the all-gather
# Half of it: a reduce-scatter.
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    average = op == dist.ReduceOp.AVG
    size = -(-x.numel() // n)
    padded = x.new_zeros(n * size)
    padded[: x.numel()] = x.flatten()
    piece = x.new_empty(size)
    dist.reduce_scatter_tensor(piece, padded, op=dist.ReduceOp.SUM if average else op)
    if average:
        piece /= n
    mine = x.view(-1)[rank * size : (rank + 1) * size]
    mine.copy_(piece[: len(mine)])

# exercise: all_reduce_sharded
# diagnosis: wrong_value
# hint: padding inside
# Each piece is padded, and the padding is cut off at the end of all.
import torch
import torch.distributed as dist
import torch.nn.functional as F


def all_reduce_sharded(x, op):
    n, average = dist.get_world_size(), op == dist.ReduceOp.AVG
    size = -(-x.numel() // n)
    pieces = x.flatten().tensor_split(n)
    padded = [F.pad(piece, (0, size - len(piece))) for piece in pieces]
    mine = x.new_empty(size)
    dist.reduce_scatter(mine, padded, dist.ReduceOp.SUM if average else op)
    if average:
        mine /= n
    dist.all_gather(padded, mine)
    x.copy_(torch.cat(padded)[: x.numel()].view_as(x))

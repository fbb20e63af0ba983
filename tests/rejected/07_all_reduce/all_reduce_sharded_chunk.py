# exercise: all_reduce_sharded
# diagnosis: exception
# hint: tensor_split(n) always gives n
import torch
import torch.distributed as dist
import torch.nn.functional as F


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    average = op == dist.ReduceOp.AVG
    pieces = list(x.flatten().chunk(n))
    size = len(pieces[0])
    pieces = [F.pad(piece, (0, size - len(piece))) for piece in pieces]
    mine = x.new_empty(size)
    dist.reduce_scatter(mine, pieces, dist.ReduceOp.SUM if average else op)
    if average:
        mine /= n
    everything = [torch.empty_like(mine) for _ in range(n)]
    dist.all_gather(everything, mine)
    x.copy_(torch.cat(everything)[: x.numel()].view_as(x))

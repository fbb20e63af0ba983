# exercise: all_reduce_sharded
# diagnosis: exception
# hint: one size only
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    average = op == dist.ReduceOp.AVG
    pieces = list(x.flatten().tensor_split(n))
    mine = torch.empty_like(pieces[rank])
    dist.reduce_scatter(mine, pieces, dist.ReduceOp.SUM if average else op)
    if average:
        mine /= n
    everything = [torch.empty_like(piece) for piece in pieces]
    dist.all_gather(everything, mine)
    x.copy_(torch.cat(everything).view_as(x))

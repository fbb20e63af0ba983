# exercise: all_reduce_sharded
# diagnosis: exception
# hint: tensor_split(n) always gives n
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    average = op == dist.ReduceOp.AVG
    pieces = list(x.flatten().chunk(n))
    mine = torch.empty_like(pieces[rank])
    dist.reduce_scatter(mine, pieces, dist.ReduceOp.SUM if average else op)
    if average:
        mine /= n
    size = len(pieces[0])
    padded = x.new_zeros(size)
    padded[: len(mine)] = mine
    everything = [x.new_empty(size) for _ in range(n)]
    dist.all_gather(everything, padded)
    x.copy_(torch.cat(everything)[: x.numel()].view_as(x))

# exercise: all_reduce_sharded
# diagnosis: exception
# hint: n does not divide this length
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    n, average = dist.get_world_size(), op == dist.ReduceOp.AVG
    rows = x.view(n, -1)
    piece = torch.empty_like(rows[0])
    dist.reduce_scatter(piece, list(rows.clone()), dist.ReduceOp.SUM if average else op)
    if average:
        piece /= n
    whole = torch.empty_like(rows)
    dist.all_gather(list(whole), piece)
    x.copy_(whole.view_as(x))

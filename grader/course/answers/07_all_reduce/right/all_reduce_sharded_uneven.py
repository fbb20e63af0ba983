# exercise: all_reduce_sharded
# diagnosis: none
# Uneven pieces by tensor_split; only the all-gather needs them padded.
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    average = op == dist.ReduceOp.AVG
    flat = x.reshape(-1)
    pieces = list(flat.tensor_split(n))
    mine = torch.empty_like(pieces[rank])
    dist.reduce_scatter(mine, [p.clone() for p in pieces], dist.ReduceOp.SUM if average else op)
    if average:
        mine.div_(n)
    longest = max(len(p) for p in pieces)
    full = torch.full((longest,), 7, dtype=x.dtype)
    full[: len(mine)] = mine
    arrived = [torch.empty_like(full) for _ in range(n)]
    dist.all_gather(arrived, full)
    for place, piece in zip(pieces, arrived, strict=True):
        place.copy_(piece[: len(place)])
    x.copy_(flat.view_as(x))

# exercise: unblock_order
# diagnosis: none
import torch
import torch.distributed as dist


def unblock_order(x):
    info = torch.finfo if x.dtype.is_floating_point else torch.iinfo
    row = torch.cat([x.flatten(), torch.full_like(x, info(x.dtype).min).flatten()])
    if dist.get_rank() == 0:
        row[x.numel() :] = x.flatten()
    dist.all_reduce(row, dist.ReduceOp.MAX)
    biggest, first = row.view(2, *x.shape)
    return biggest + first

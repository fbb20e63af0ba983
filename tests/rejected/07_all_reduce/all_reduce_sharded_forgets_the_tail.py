# exercise: all_reduce_sharded
# diagnosis: wrong_value
# hint: rounds down
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    n, average = dist.get_world_size(), op == dist.ReduceOp.AVG
    size = x.numel() // n
    flat = x.view(-1)[: n * size]
    piece = x.new_empty(size)
    dist.reduce_scatter_tensor(piece, flat.clone(), op=dist.ReduceOp.SUM if average else op)
    if average:
        piece /= n
    whole = torch.empty_like(flat)
    dist.all_gather_into_tensor(whole, piece)
    flat.copy_(whole)

# exercise: all_reduce_sharded
# diagnosis: exception
# hint: returns None, which is now called out
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    n = dist.get_world_size()
    parts = [c.contiguous() for c in x.tensor_split(n)]
    out = torch.empty_like(parts[0])
    out = dist.reduce_scatter(out, parts)
    x.copy_(out)

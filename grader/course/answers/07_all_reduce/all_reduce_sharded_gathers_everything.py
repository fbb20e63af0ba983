# exercise: all_reduce_sharded
# diagnosis: too_many_bytes
# hint: every rank did all the work
# says: elements sent by one rank
# earns: 0.5
import torch
import torch.distributed as dist


def all_reduce_sharded(x, op):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    stack = torch.stack(parts)
    if op == dist.ReduceOp.MIN:
        x.copy_(stack.amin(0))
    elif op == dist.ReduceOp.MAX:
        x.copy_(stack.amax(0))
    elif op == dist.ReduceOp.PRODUCT:
        x.copy_(stack.prod(0))
    else:
        x.copy_(stack.sum(0))
        if op == dist.ReduceOp.AVG:
            x /= dist.get_world_size()

# exercise: reduce
# diagnosis: none
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty_like(x)
    for src in range(dist.get_world_size()):
        if src == dst:
            continue
        dist.recv(buffer, src)
        if op == dist.ReduceOp.MIN:
            x.copy_(torch.minimum(x, buffer))
        elif op == dist.ReduceOp.MAX:
            x.copy_(torch.maximum(x, buffer))
        elif op == dist.ReduceOp.PRODUCT:
            x.mul_(buffer)
        else:
            x.add_(buffer)
    if op == dist.ReduceOp.AVG:
        x.div_(dist.get_world_size())

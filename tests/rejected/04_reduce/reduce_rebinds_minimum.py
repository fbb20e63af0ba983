# exercise: reduce
# diagnosis: wrong_value
# hint: SUM is right, but with another operation
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    n = dist.get_world_size()
    buffer = torch.empty_like(x)
    for src in range(n):
        if src == dst:
            continue
        dist.recv(buffer, src)
        if op == dist.ReduceOp.MIN:
            x = torch.minimum(x, buffer)
        elif op == dist.ReduceOp.MAX:
            x = torch.maximum(x, buffer)
        elif op == dist.ReduceOp.PRODUCT:
            x *= buffer
        else:
            x += buffer
    if op == dist.ReduceOp.AVG:
        x /= n

# exercise: reduce
# diagnosis: wrong_value
# hint: x += buffer
import torch
import torch.distributed as dist

OPS = dist.ReduceOp


def reduce(x, dst, op):
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty_like(x)
    for src in range(dist.get_world_size()):
        if src == dst:
            continue
        dist.recv(buffer, src)
        if op == OPS.MIN:
            x = torch.minimum(x, buffer)
        elif op == OPS.MAX:
            x = torch.maximum(x, buffer)
        elif op == OPS.PRODUCT:
            x = x * buffer
        else:
            x = x + buffer
    if op == OPS.AVG:
        x = x / dist.get_world_size()

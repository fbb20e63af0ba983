# exercise: reduce
# diagnosis: wrong_value
# hint: the division is missing
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty_like(x)
    for src in range(dist.get_world_size()):
        if src != dst:
            dist.recv(buffer, src)
            if op == dist.ReduceOp.MIN:
                torch.minimum(x, buffer, out=x)
            elif op == dist.ReduceOp.MAX:
                torch.maximum(x, buffer, out=x)
            elif op == dist.ReduceOp.PRODUCT:
                x *= buffer
            else:
                x += buffer

# exercise: reduce
# diagnosis: too_many_messages
# hint: dst sends, too
# Tells everybody the result, though nobody has asked.
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    R = dist.ReduceOp
    rank, n = dist.get_rank(), dist.get_world_size()
    buffer = torch.empty_like(x)
    if rank != dst:
        dist.send(x, dst)
        dist.recv(buffer, dst)
        return
    others = [src for src in range(n) if src != dst]
    for src in others:
        dist.recv(buffer, src)
        if op == R.MIN:
            torch.minimum(x, buffer, out=x)
        elif op == R.MAX:
            torch.maximum(x, buffer, out=x)
        elif op == R.PRODUCT:
            x *= buffer
        else:
            x += buffer
    if op == R.AVG:
        x /= n
    for src in others:
        dist.send(x, src)

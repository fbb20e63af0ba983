# exercise: reduce
# diagnosis: wrong_value
# hint: MIN and MAX are swapped
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    R = dist.ReduceOp
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty_like(x)
    for src in range(n):
        if src == dst:
            continue
        dist.recv(buffer, src)
        if op == R.MAX:
            torch.minimum(x, buffer, out=x)
        elif op == R.MIN:
            torch.maximum(x, buffer, out=x)
        elif op == R.PRODUCT:
            x *= buffer
        else:
            x += buffer
    if op == R.AVG:
        x /= n

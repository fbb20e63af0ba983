# exercise: reduce
# diagnosis: wrong_value
# hint: look at the division
# not: once per message | division is missing | n − 1
# An average of two, whatever the number of ranks.
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
        if op == R.MIN:
            torch.minimum(x, buffer, out=x)
        elif op == R.MAX:
            torch.maximum(x, buffer, out=x)
        elif op == R.PRODUCT:
            x *= buffer
        else:
            x += buffer
    if op == R.AVG and n > 1:
        x /= 2

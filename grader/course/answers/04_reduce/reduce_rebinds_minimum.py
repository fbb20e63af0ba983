"""SUM is right, but with another operation x on dst is as it was. torch.minimum(x, buffer), x *
buffer and x.mul(buffer) make new tensors that the caller never sees: write into x, as with
torch.minimum(x, buffer, out=x), x *= buffer or x.mul_(buffer).
"""
# exercise: reduce
# diagnosis: wrong_value
# or: PRODUCT = "a new tensor"
# or: PRODUCT = "a new tensor"; MINIMUM = "in place"
import torch
import torch.distributed as dist

MINIMUM = "a new tensor"
PRODUCT = "in place"


def reduce(x, dst, op):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty_like(x)
    for src in range(n):
        if src == dst:
            continue
        dist.recv(buffer, src)
        if op == R.MIN and MINIMUM == "a new tensor":
            x = torch.minimum(x, buffer)
        elif op == R.MAX and MINIMUM == "a new tensor":
            x = torch.maximum(x, buffer)
        elif op == R.PRODUCT and PRODUCT == "a new tensor":
            x = x * buffer
        else:
            combine(op, x, buffer)
    if op == R.AVG:
        x /= n

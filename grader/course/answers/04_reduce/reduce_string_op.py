# exercise: reduce
# diagnosis: wrong_value
# hint: Whatever op is, you sum, and do
# Compares str(op)
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    n, r = dist.get_world_size(), dist.get_rank()
    if r != dst:
        dist.send(x, dst)
        return
    b = torch.empty_like(x)
    for i in range(n):
        if i != r:
            dist.recv(b, i)
            if str(op) == "MIN":
                x.copy_(torch.minimum(x, b))
            elif str(op) == "MAX":
                x.copy_(torch.maximum(x, b))
            elif str(op) == "PRODUCT":
                x *= b
            else:
                x += b
    if str(op) == "AVG":
        x /= n

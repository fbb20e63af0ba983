# exercise: reduce
# diagnosis: wrong_value
# hint: Integers above 2**24
# Integers through float32
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    n, r = dist.get_world_size(), dist.get_rank()
    R = dist.ReduceOp
    if r != dst:
        dist.send(x, dst)
        return
    w = torch.float64 if x.dtype == torch.float64 else torch.float32
    acc, b = x.to(w), torch.empty_like(x)
    for i in range(n):
        if i != r:
            dist.recv(b, i)
            c = b.to(w)
            acc = (
                torch.minimum(acc, c)
                if op == R.MIN
                else torch.maximum(acc, c)
                if op == R.MAX
                else acc * c
                if op == R.PRODUCT
                else acc + c
            )
    x.copy_(acc / n if op == R.AVG else acc)

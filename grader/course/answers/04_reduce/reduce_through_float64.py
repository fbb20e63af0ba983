# exercise: reduce
# diagnosis: wrong_value
# hint: up to 2**53 only
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    n, rank, ops = dist.get_world_size(), dist.get_rank(), dist.ReduceOp
    if rank != dst:
        dist.send(x, dst)
        return
    total, came = x.double(), torch.empty_like(x)
    combine = {ops.MIN: torch.minimum, ops.MAX: torch.maximum, ops.PRODUCT: torch.mul}
    for other in range(n):
        if other != rank:
            dist.recv(came, other)
            total = combine.get(op, torch.add)(total, came.double())
    x.copy_(total / n if op == ops.AVG else total)

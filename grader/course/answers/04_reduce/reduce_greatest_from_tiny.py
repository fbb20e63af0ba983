# exercise: reduce
# diagnosis: wrong_value
# hint: 0, or a number close to it
# not: begins with zeros
import torch
import torch.distributed as dist

R = dist.ReduceOp
COMBINE = {R.MIN: torch.minimum, R.PRODUCT: torch.mul}


def reduce(x, dst, op):
    n, rank = dist.get_world_size(), dist.get_rank()
    if rank != dst:
        dist.send(x, dst)
        return
    total, came = x.clone(), torch.empty_like(x)
    if op == R.MAX:
        limits = torch.finfo(x.dtype).tiny if x.is_floating_point() else torch.iinfo(x.dtype).min
        total = torch.maximum(torch.full_like(x, limits), x)
    for src in [r for r in range(n) if r != dst]:
        dist.recv(came, src)
        total = torch.maximum(total, came) if op == R.MAX else COMBINE.get(op, torch.add)(total, came)
    x.copy_(total / n if op == R.AVG else total)

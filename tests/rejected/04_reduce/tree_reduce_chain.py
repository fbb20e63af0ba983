# exercise: tree_reduce
# diagnosis: too_many_rounds
# hint: That is a chain
# earns: 0.5
import torch
import torch.distributed as dist

COMBINE = {"MIN": torch.minimum, "MAX": torch.maximum, "PRODUCT": torch.mul}


def combine(op, a, b):
    for name, function in COMBINE.items():
        if op == getattr(dist.ReduceOp, name):
            return function(a, b)
    return a + b


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer = x.clone(), torch.empty_like(x)
    if v + 1 < n:
        dist.recv(buffer, (v + 1 + dst) % n)
        total = combine(op, total, buffer)
    if v:
        dist.send(total, (v - 1 + dst) % n)
    else:
        x.copy_(total / n if op == dist.ReduceOp.AVG else total)

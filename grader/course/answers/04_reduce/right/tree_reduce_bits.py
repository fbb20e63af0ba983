# exercise: tree_reduce
# diagnosis: none
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
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total, (v - step + dst) % n)
            return
        if v + step < n:
            dist.recv(buffer, (v + step + dst) % n)
            total = combine(op, total, buffer)
        step *= 2
    x.copy_(total / n if op == dist.ReduceOp.AVG else total)

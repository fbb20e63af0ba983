# exercise: reduce
# diagnosis: none
# A binomial tree; partial sums are kept in a copy.
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

COMBINE = {"MIN": torch.minimum, "MAX": torch.maximum, "PRODUCT": torch.mul}


def combine(op, a, b):
    for name, function in COMBINE.items():
        if op == getattr(ReduceOp, name):
            return function(a, b)
    return a + b


def reduce(x, dst, op):
    n = dist.get_world_size()
    virtual = (dist.get_rank() - dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        partner = virtual ^ step
        if virtual & step:
            dist.send(total, (partner + dst) % n)
            return
        if partner < n:
            dist.recv(buffer, (partner + dst) % n)
            total = combine(op, total, buffer)
        step <<= 1
    if op == ReduceOp.AVG:
        total = total / n
    x.copy_(total)

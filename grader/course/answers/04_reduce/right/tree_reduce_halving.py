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
    # the broadcast's tree with its arrows turned round: the far half sends first
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer = x.clone(), torch.empty_like(x)
    step = 1 << (n - 1).bit_length() >> 1
    while step:
        if step <= v < 2 * step:
            dist.send(total, (v - step + dst) % n)
        elif v < step and v + step < n:
            dist.recv(buffer, (v + step + dst) % n)
            total = combine(op, total, buffer)
        step //= 2
    if v == 0:
        x.copy_(total / n if op == dist.ReduceOp.AVG else total)

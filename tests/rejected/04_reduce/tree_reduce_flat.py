# exercise: tree_reduce
# diagnosis: too_many_rounds
# hint: Every message goes to dst
# says: the point of this exercise
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
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty_like(x)
    for src in range(n):
        if src != dst:
            dist.recv(buffer, src)
            x.copy_(combine(op, x, buffer))
    if op == dist.ReduceOp.AVG:
        x /= n

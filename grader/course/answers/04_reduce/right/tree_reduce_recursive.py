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


def up(total, members, op):
    """What the first of the members holds afterwards is the reduction of them all."""
    if len(members) == 1:
        return total
    half = (len(members) + 1) // 2
    rank = dist.get_rank()
    mine = members[:half] if rank in members[:half] else members[half:]
    total = up(total, mine, op)
    if rank == members[half]:
        dist.send(total, members[0])
    elif rank == members[0]:
        buffer = torch.empty_like(total)
        dist.recv(buffer, members[half])
        total = combine(op, total, buffer)
    return total


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    total = up(x.clone(), [(dst + i) % n for i in range(n)], op)
    if dist.get_rank() == dst:
        x.copy_(total / n if op == dist.ReduceOp.AVG else total)

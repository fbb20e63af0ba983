# exercise: recursive_doubling_all_reduce
# diagnosis: none
import torch
import torch.distributed as dist


REDUCTIONS = {"MIN": torch.minimum, "MAX": torch.maximum, "PRODUCT": torch.mul}


def recursive_doubling_all_reduce(x, op):
    """Works on a tensor of its own, and writes the result into x in the end."""
    rank, n = dist.get_rank(), dist.get_world_size()
    merge = torch.add
    for name, function in REDUCTIONS.items():
        if op == getattr(dist.ReduceOp, name):
            merge = function
    levels = n.bit_length() - 1
    rest = n - 2**levels
    total = x.clone()
    if rank < rest:
        came = torch.empty_like(x)
        dist.recv(came, n - 1 - rank)
        total = merge(total, came)
    elif rank >= 2**levels:
        dist.send(x, n - 1 - rank)
        dist.recv(x, n - 1 - rank)
        return
    for level in range(levels):
        came = torch.empty_like(total)
        request = dist.irecv(came, rank ^ 2**level)
        dist.send(total, rank ^ 2**level)
        request.wait()
        total = merge(total, came)
    if op == dist.ReduceOp.AVG:
        total = total / n
    x.copy_(total)
    if rank < rest:
        dist.send(x, n - 1 - rank)

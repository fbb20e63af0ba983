# exercise: halving_doubling_all_reduce
# diagnosis: none
import torch
import torch.distributed as dist


def combine(op, mine, came):
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came


def halving_doubling_all_reduce(x, op):
    """Pads x to a multiple of the power of two, and halves a copy."""
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    share = -(-x.numel() // power)
    padded = torch.zeros(share * power, dtype=x.dtype)
    padded[: x.numel()] = x.flatten()
    if rank + power < n:
        came = torch.empty_like(x)
        dist.recv(came, rank + power)
        combine(op, padded[: x.numel()], came.flatten())
    begin, size, steps = 0, len(padded), []
    step = 1
    while step < power:
        size //= 2
        kept = begin + (size if rank & step else 0)
        given = begin + (0 if rank & step else size)
        came = torch.empty(size, dtype=x.dtype)
        request = dist.isend(padded[given : given + size], rank ^ step)
        dist.recv(came, rank ^ step)
        request.wait()
        combine(op, padded[kept : kept + size], came)
        steps.append((step, kept, given, size))
        begin, step = kept, 2 * step
    for step, kept, given, size in steps[::-1]:
        request = dist.isend(padded[kept : kept + size], rank ^ step)
        dist.recv(padded[given : given + size], rank ^ step)
        request.wait()
    if op == dist.ReduceOp.AVG:
        padded /= n
    x.copy_(padded[: x.numel()].view_as(x))
    if rank + power < n:
        dist.send(x, rank + power)

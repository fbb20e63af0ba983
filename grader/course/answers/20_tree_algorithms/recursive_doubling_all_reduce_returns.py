# exercise: recursive_doubling_all_reduce
# diagnosis: wrong_type
# hint: works in place
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


def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    came = torch.empty_like(x)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    if rank + power < n:
        dist.recv(came, rank + power)
        combine(op, x, came)
    step = 1
    while step < power:
        request = dist.isend(x, rank ^ step)
        dist.recv(came, rank ^ step)
        request.wait()
        combine(op, x, came)
        step *= 2
    if op == dist.ReduceOp.AVG:
        x /= n
    if rank + power < n:
        dist.send(x, rank + power)
    return x

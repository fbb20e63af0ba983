# exercise: recursive_doubling_all_reduce
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


def recursive_doubling_all_reduce(x, op):
    """Recursive, and without messages where there are no elements."""
    if x.numel() == 0:
        return
    n, rank = dist.get_world_size(), dist.get_rank()
    came = torch.empty_like(x)

    def among(count):
        if count == 1:
            return
        among(count // 2)
        request = dist.isend(x, rank ^ (count // 2))
        dist.recv(came, rank ^ (count // 2))
        request.wait()
        combine(op, x, came)

    power = 1 << (n.bit_length() - 1)
    if rank < power:
        if rank + power < n:
            dist.recv(came, rank + power)
            combine(op, x, came)
        among(power)
        if op == dist.ReduceOp.AVG:
            x /= n
        if rank + power < n:
            dist.send(x, rank + power)
    else:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)

# exercise: halving_doubling_all_reduce
# diagnosis: too_many_rounds
# hint: that is a ring
# earns: 0.5
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
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = x.view(-1).tensor_split(n)
    for s in range(1, n):
        mine = chunks[(rank - s - 1) % n]
        buffer = torch.empty_like(mine)
        request = dist.isend(chunks[(rank - s) % n], right)
        dist.recv(buffer, left)
        request.wait()
        combine(op, mine, buffer)
    for s in range(1, n):
        request = dist.isend(chunks[(rank - s + 1) % n], right)
        dist.recv(chunks[(rank - s) % n], left)
        request.wait()
    if op == dist.ReduceOp.AVG:
        x /= n

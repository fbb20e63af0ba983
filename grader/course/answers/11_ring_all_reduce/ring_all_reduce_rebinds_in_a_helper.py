# exercise: ring_all_reduce
# diagnosis: wrong_value
# hint: `mine = torch.minimum(mine, came)` leaves the chunk of x as it was
# not: off by one | not finished | index
# The indices are right; two operations in a helper give a name to a new tensor.
import torch
import torch.distributed as dist


def combine(mine, came, op):
    if op == dist.ReduceOp.MIN:
        mine = torch.minimum(mine, came)
    elif op == dist.ReduceOp.MAX:
        mine = torch.maximum(mine, came)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= came
    else:
        mine += came


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = x.view(-1).tensor_split(n)
    for s in range(1, n):
        out, into = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        buffer = torch.empty_like(into)
        request = dist.isend(out, right)
        dist.recv(buffer, left)
        request.wait()
        combine(into, buffer, op)
    for s in range(n - 1):
        request = dist.isend(chunks[(rank - s) % n], right)
        dist.recv(chunks[(rank - s - 1) % n], left)
        request.wait()
    if op == dist.ReduceOp.AVG:
        x /= n

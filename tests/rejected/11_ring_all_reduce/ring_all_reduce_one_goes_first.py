# exercise: ring_all_reduce
# diagnosis: too_many_rounds
# hint: at the same time
# Cannot hang, but each step goes round the ring rank by rank.
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


def swap(out, into, left, right):
    if dist.get_rank() == 0:
        dist.send(out, right)
        dist.recv(into, left)
    else:
        came = torch.empty_like(into)
        dist.recv(came, left)
        dist.send(out, right)
        into.copy_(came)


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    chunks = x.view(-1).tensor_split(n)
    for s in range(1, n):
        out, mine = chunks[(rank - s) % n], chunks[(rank - s - 1) % n]
        came = torch.empty_like(mine)
        swap(out, came, left, right)
        combine(op, mine, came)
    for s in range(1, n):
        out, mine = chunks[(rank - s + 1) % n], chunks[(rank - s) % n]
        swap(out, mine, left, right)
    if op == dist.ReduceOp.AVG:
        x /= n

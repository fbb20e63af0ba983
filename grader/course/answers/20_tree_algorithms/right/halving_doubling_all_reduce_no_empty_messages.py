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


def swap(out, into, peer):
    """Leave out what has no elements."""
    requests = [dist.isend(out, peer)] if len(out) else []
    if len(into):
        dist.recv(into, peer)
    for request in requests:
        request.wait()


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    if rank + power < n:
        came = torch.empty_like(x)
        dist.recv(came, rank + power)
        combine(op, x, came)
    mine, done, step = x.view(-1), [], 1
    while step < power:
        low, high = mine.tensor_split(2)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        swap(given, came, rank ^ step)
        combine(op, kept, came)
        done.append((step, kept, given))
        mine, step = kept, 2 * step
    if op == dist.ReduceOp.AVG:
        mine /= n
    for step, kept, given in reversed(done):
        swap(kept, given, rank ^ step)
    if rank + power < n:
        dist.send(x, rank + power)

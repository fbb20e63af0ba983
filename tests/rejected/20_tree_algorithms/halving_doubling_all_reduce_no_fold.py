# exercise: halving_doubling_all_reduce
# diagnosis: exception
# hint: not a power of two here
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
    mine, done, step = x.view(-1), [], 1
    while step < n:
        low, high = mine.tensor_split(2)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        request = dist.isend(given, rank ^ step)
        dist.recv(came, rank ^ step)
        request.wait()
        combine(op, kept, came)
        done.append((step, kept, given))
        mine, step = kept, 2 * step
    if op == dist.ReduceOp.AVG:
        mine /= n
    for step, kept, given in reversed(done):
        request = dist.isend(kept, rank ^ step)
        dist.recv(given, rank ^ step)
        request.wait()

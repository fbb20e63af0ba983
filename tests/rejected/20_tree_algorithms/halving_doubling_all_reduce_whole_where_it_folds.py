# exercise: halving_doubling_all_reduce
# diagnosis: too_many_bytes
# hint: Whole tensors
# earns: 0.5
# Halves for powers of two; for other numbers of ranks whole tensors, as in recursive doubling.
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
    request = dist.isend(out, peer)
    dist.recv(into, peer)
    request.wait()


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    if rank >= power:
        dist.send(x, rank - power)
        dist.recv(x, rank - power)
        return
    came = torch.empty_like(x)
    if rank + power < n:
        dist.recv(came, rank + power)
        combine(op, x, came)
    steps = [1 << k for k in range(power.bit_length() - 1)]
    if power < n:
        for step in steps:
            swap(x, came, rank ^ step)
            combine(op, x, came)
        if op == dist.ReduceOp.AVG:
            x /= n
        if rank + power < n:
            dist.send(x, rank + power)
        return
    mine, done = x.view(-1), []
    for step in steps:
        low, high = mine.tensor_split(2)
        kept, given = (high, low) if rank & step else (low, high)
        came = torch.empty_like(kept)
        swap(given, came, rank ^ step)
        combine(op, kept, came)
        done.append((step, kept, given))
        mine = kept
    if op == dist.ReduceOp.AVG:
        mine /= n
    for step, kept, given in reversed(done):
        swap(kept, given, rank ^ step)

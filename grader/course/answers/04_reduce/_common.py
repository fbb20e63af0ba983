"""What the mistakes of this chapter share: right answers, of which they change a part."""
import torch
import torch.distributed as dist

R = dist.ReduceOp


def combine(op, mine, came):
    if op == R.MIN:
        torch.minimum(mine, came, out=mine)
    elif op == R.MAX:
        torch.maximum(mine, came, out=mine)
    elif op == R.PRODUCT:
        mine *= came
    else:
        mine += came


def finish(op, total, n):
    if op == R.AVG:
        total /= n


def reduce(x, dst, op):
    n = dist.get_world_size()
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    buffer = torch.empty_like(x)
    for src in range(n):
        if src != dst:
            dist.recv(buffer, src)
            combine(op, x, buffer)
    finish(op, x, n)


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total, (v - step + dst) % n)
            return
        if v + step < n:
            dist.recv(buffer, (v + step + dst) % n)
            combine(op, total, buffer)
        step *= 2
    finish(op, total, n)
    x.copy_(total)

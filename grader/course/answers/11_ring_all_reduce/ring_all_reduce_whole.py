# exercise: ring_all_reduce
# diagnosis: nondeterministic
# hint: Rounding depends on the order
# Whole tensor around the ring n-1 times
import torch
import torch.distributed as dist


def combine(a, b, op):
    if op == dist.ReduceOp.MIN:
        torch.minimum(a, b, out=a)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(a, b, out=a)
    elif op == dist.ReduceOp.PRODUCT:
        a *= b
    else:
        a += b


def ring_all_reduce(x, op):
    n, r = dist.get_world_size(), dist.get_rank()
    cur = x.clone()
    for s in range(n - 1):
        nxt = torch.empty_like(x)
        w = dist.isend(cur, (r + 1) % n)
        dist.recv(nxt, (r - 1) % n)
        w.wait()
        combine(x, nxt, op)
        cur = nxt
    if op == dist.ReduceOp.AVG:
        x /= n

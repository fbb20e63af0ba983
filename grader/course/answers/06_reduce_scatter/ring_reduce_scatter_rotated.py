# exercise: ring_reduce_scatter
# diagnosis: too_many_rounds
# hint: There is one round too many: n
# Baidu schedule and then one hop more
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


def ring_reduce_scatter(chunks, op):
    n, r = dist.get_world_size(), dist.get_rank()
    p = [c.clone() for c in chunks]
    b = torch.empty_like(p[0])
    for s in range(n - 1):
        w = dist.isend(p[(r - s) % n], (r + 1) % n)
        dist.recv(b, (r - 1) % n)
        w.wait()
        combine(p[(r - s - 1) % n], b, op)
    if n > 1:
        w = dist.isend(p[(r + 1) % n], (r + 1) % n)
        dist.recv(b, (r - 1) % n)
        w.wait()
        p[r].copy_(b)
    return p[r] / n if op == dist.ReduceOp.AVG else p[r]

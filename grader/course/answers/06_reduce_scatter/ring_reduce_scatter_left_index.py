# exercise: ring_reduce_scatter
# diagnosis: wrong_value
# hint: The messages go to the right, but
# Sends right, combines one chunk too far
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
    for s in range(1, n):
        w = dist.isend(p[(r + s) % n], (r + 1) % n)
        dist.recv(b, (r - 1) % n)
        w.wait()
        combine(p[(r + s + 1) % n], b, op)
    return p[r] / n if op == dist.ReduceOp.AVG else p[r]

# exercise: ring_all_reduce
# diagnosis: too_many_bytes
# hint: holds one chunk
# earns: 0.5
# A ring all-gather of whole tensors, and a sum in rank order.
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


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [torch.empty_like(x) for _ in range(n)]
    parts[rank].copy_(x)
    for s in range(n - 1):
        request = dist.isend(parts[(rank - s) % n], (rank + 1) % n)
        dist.recv(parts[(rank - s - 1) % n], (rank - 1) % n)
        request.wait()
    x.copy_(parts[0])
    for part in parts[1:]:
        combine(op, x, part)
    if op == dist.ReduceOp.AVG:
        x /= n

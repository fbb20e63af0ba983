# exercise: all_reduce_sharded
# diagnosis: too_many_bytes
# hint: Everything goes through one rank
# says: elements sent by one rank
# earns: 0.5
import torch
import torch.distributed as dist


def combine(a, b, op):
    known = {dist.ReduceOp.MIN: torch.minimum, dist.ReduceOp.MAX: torch.maximum}
    known[dist.ReduceOp.PRODUCT] = torch.mul
    return known.get(op, torch.add)(a, b)


def all_reduce_sharded(x, op):
    n, r = dist.get_world_size(), dist.get_rank()
    own = x.contiguous()
    if r:
        dist.send(own, 0)
        dist.recv(own, 0)
        x.copy_(own)
        return
    other = torch.empty_like(own)
    for i in range(1, n):
        dist.recv(other, i)
        own = combine(own, other, op)
    if op == dist.ReduceOp.AVG:
        own = own / n
    for i in range(1, n):
        dist.send(own, i)
    x.copy_(own)

# exercise: all_reduce_sharded
# diagnosis: too_many_bytes
# hint: every rank did all the work
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
    own = x.clone(memory_format=torch.contiguous_format)
    requests = [dist.isend(own, i) for i in range(n) if i != r]
    parts = []
    for i in range(n):
        parts.append(own if i == r else torch.empty_like(own))
        if i != r:
            dist.recv(parts[i], i)
    for request in requests:
        request.wait()
    total = parts[0]
    for part in parts[1:]:
        total = combine(total, part, op)
    x.copy_(total / n if op == dist.ReduceOp.AVG else total)

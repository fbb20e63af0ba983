# exercise: ring_all_reduce
# diagnosis: none
# The receive is started, the send blocks; ends up owning chunk rank + 1. Each
# chunk is copied before it is sent, so the schedule shows in no offset.
import torch
import torch.distributed as dist

R = dist.ReduceOp


def combine(op, a, b):
    if op == R.MIN:
        return torch.minimum(a, b)
    if op == R.MAX:
        return torch.maximum(a, b)
    return a * b if op == R.PRODUCT else a + b


def swap(out, like, rank, n):
    came = torch.empty_like(like)
    request = dist.irecv(came, (rank - 1) % n)
    dist.send(out.clone(), (rank + 1) % n)
    request.wait()
    return came


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    parts = [part.clone() for part in torch.tensor_split(x.flatten(), n)]
    for s in range(n - 1):
        out, into = (rank - s) % n, (rank - s - 1) % n
        parts[into] = combine(op, swap(parts[out], parts[into], rank, n), parts[into])
    for s in range(n - 1):
        out, into = (rank + 1 - s) % n, (rank - s) % n
        parts[into] = swap(parts[out], parts[into], rank, n)
    result = torch.cat(parts).view_as(x)
    x.copy_(result / n if op == R.AVG else result)

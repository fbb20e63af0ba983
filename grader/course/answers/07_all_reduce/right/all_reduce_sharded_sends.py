# exercise: all_reduce_sharded
# diagnosis: none
# Sends and receives in rotation, out of views of one row.
import torch
import torch.distributed as dist


def combine(a, b, op):
    known = {dist.ReduceOp.MIN: torch.minimum, dist.ReduceOp.MAX: torch.maximum}
    known[dist.ReduceOp.PRODUCT] = torch.mul
    return known.get(op, torch.add)(a, b)


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    row = x.flatten()
    shares = row.tensor_split(n)
    total = shares[rank].clone()
    for step in range(1, n):
        to, source = (rank + step) % n, (rank - step) % n
        came = torch.empty_like(total)
        request = dist.isend(shares[to], to)
        dist.recv(came, source)
        request.wait()
        total = combine(total, came, op)
    if op == dist.ReduceOp.AVG:
        total /= n
    requests = [dist.isend(total, other) for other in range(n) if other != rank]
    for other in range(n):
        if other != rank:
            came = x.new_empty(shares[other].shape)
            dist.recv(came, other)
            shares[other].copy_(came)
    for request in requests:
        request.wait()
    shares[rank].copy_(total)
    x.copy_(row.view_as(x))

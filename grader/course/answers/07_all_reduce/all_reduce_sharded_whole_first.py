# exercise: all_reduce_sharded
# diagnosis: too_many_bytes
# hint: carries more than one piece
# earns: 0.5
# Whole tensors in the first stage, pieces in the second.
import torch
import torch.distributed as dist


def combine(a, b, op):
    known = {dist.ReduceOp.MIN: torch.minimum, dist.ReduceOp.MAX: torch.maximum}
    known[dist.ReduceOp.PRODUCT] = torch.mul
    return known.get(op, torch.add)(a, b)


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    others = [other for other in range(n) if other != rank]
    flat = x.flatten().clone()
    pieces = list(flat.tensor_split(n))
    mine = pieces[rank].clone()
    sends = [dist.isend(flat.clone(), other) for other in others]
    for other in others:
        came = torch.empty_like(flat)
        dist.recv(came, other)
        mine = combine(mine, came.tensor_split(n)[rank], op)
    for request in sends:
        request.wait()
    if op == dist.ReduceOp.AVG:
        mine = mine / n
    sends = [dist.isend(mine, other) for other in others]
    for other in others:
        dist.recv(pieces[other], other)
    for request in sends:
        request.wait()
    pieces[rank].copy_(mine)
    x.copy_(flat.view_as(x))

# exercise: all_reduce_sharded
# diagnosis: exception
# hint: tensor_split(n) always gives n
import torch
import torch.distributed as dist


def combine(mine, received, op):
    if op == dist.ReduceOp.MIN:
        torch.minimum(mine, received, out=mine)
    elif op == dist.ReduceOp.MAX:
        torch.maximum(mine, received, out=mine)
    elif op == dist.ReduceOp.PRODUCT:
        mine *= received
    else:
        mine += received


def all_reduce_sharded(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    flat = x.flatten().clone()
    pieces = flat.chunk(n)
    mine = pieces[rank].clone()
    buf = torch.empty_like(mine)
    for k in range(1, n):
        to, frm = (rank + k) % n, (rank - k) % n
        req = dist.isend(pieces[to], to)
        dist.recv(buf, frm)
        req.wait()
        combine(mine, buf, op)
    if op == dist.ReduceOp.AVG:
        mine /= n
    pieces[rank].copy_(mine)
    for k in range(1, n):
        to, frm = (rank + k) % n, (rank - k) % n
        req = dist.isend(mine, to)
        dist.recv(pieces[frm], frm)
        req.wait()
    x.copy_(flat.view_as(x))

# exercise: recursive_doubling_all_reduce
# diagnosis: too_many_rounds
# hint: log₂ n rounds are enough
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


def swap(out, into, peer):
    request = dist.isend(out, peer)
    dist.recv(into, peer)
    request.wait()



def recursive_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    p = 1
    while p * 2 <= n:
        p *= 2
    if rank >= p:
        dist.send(x, 0)
        dist.recv(x, 0)
        return
    buf = torch.empty_like(x)
    if rank == 0:
        for extra in range(p, n):
            dist.recv(buf, extra)
            combine(x, buf, op)
    d = 1
    while d < p:
        swap(x, buf, rank ^ d)
        combine(x, buf, op)
        d *= 2
    if op == dist.ReduceOp.AVG:
        x /= n
    if rank == 0:
        for extra in range(p, n):
            dist.send(x, extra)

# exercise: ring_all_reduce
# diagnosis: not_neighbour
# hint: next to the sender
# Every chunk straight to its owner, and from there to everybody: no ring.
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
    chunks = x.view(-1).tensor_split(n)
    mine = chunks[rank]
    for s in range(1, n):
        to, source = (rank + s) % n, (rank - s) % n
        came = torch.empty_like(mine)
        request = dist.isend(chunks[to], to)
        dist.recv(came, source)
        request.wait()
        combine(op, mine, came)
    if op == dist.ReduceOp.AVG:
        mine /= n
    for s in range(1, n):
        to, source = (rank + s) % n, (rank - s) % n
        request = dist.isend(mine, to)
        dist.recv(chunks[source], source)
        request.wait()

# exercise: ring_all_reduce
# diagnosis: none
# The ring turns to the left, and even and odd ranks begin differently; one of
# the two calls never blocks, so that both directions are busy in every step.
import torch
import torch.distributed as dist


def swap(out, into, to, source):
    if dist.get_rank() % 2 == 0:
        request = dist.isend(out, to)
        dist.recv(into, source)
    else:
        request = dist.irecv(into, source)
        dist.send(out, to)
    request.wait()


def ring_all_reduce(x, op):
    R = dist.ReduceOp
    rank, n = dist.get_rank(), dist.get_world_size()
    to, source = (rank - 1) % n, (rank + 1) % n
    chunks = list(x.view(-1).tensor_split(n))
    chunks.reverse()  # mirrored: everything else is as on a ring to the right
    me = n - 1 - rank
    for s in range(n - 1):
        mine = chunks[(me - s - 1) % n]
        came = mine.clone()
        swap(chunks[(me - s) % n], came, to, source)
        if op == R.MIN:
            torch.minimum(mine, came, out=mine)
        elif op == R.MAX:
            torch.maximum(mine, came, out=mine)
        elif op == R.PRODUCT:
            torch.mul(mine, came, out=mine)
        else:
            torch.add(mine, came, out=mine)
    for s in range(n - 1):
        swap(chunks[(me - s + 1) % n], chunks[(me - s) % n], to, source)
    if op == R.AVG:
        x.copy_(x / n)

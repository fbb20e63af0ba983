# exercise: halving_doubling_all_reduce
# diagnosis: none
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


def halving_doubling_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1 << (n.bit_length() - 1)
    flat = x.view(-1)

    def swap(out, into, peer):
        for request in (dist.irecv(into, peer), dist.isend(out, peer)):
            request.wait()

    def among(part, step):
        """Reduce part over the ranks that differ in the bits below 2 · step."""
        if step == 0:
            if op == dist.ReduceOp.AVG:
                part /= n
            return
        middle = len(part) // 2
        kept, given = part[:middle], part[middle:]
        if rank & step:
            kept, given = given, kept
        came = torch.empty_like(kept)
        swap(given, came, rank ^ step)
        combine(op, kept, came)
        among(kept, step // 2)
        swap(kept, given, rank ^ step)

    if rank >= power:
        dist.send(flat, rank - power)
        dist.recv(flat, rank - power)
        return
    if rank + power < n:
        came = torch.empty_like(flat)
        dist.recv(came, rank + power)
        combine(op, flat, came)
    among(flat, power // 2)
    if rank + power < n:
        dist.send(flat, rank + power)

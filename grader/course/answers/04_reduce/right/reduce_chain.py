# exercise: reduce
# diagnosis: none
# Along the ring towards dst; everybody adds what came to a copy of theirs.
import torch
import torch.distributed as dist

ops = dist.ReduceOp


def merge(op, into, other):
    if op in (ops.SUM, ops.AVG):
        into += other
    elif op == ops.PRODUCT:
        into *= other
    else:
        pick = torch.minimum if op == ops.MIN else torch.maximum
        pick(into, other, out=into)


def reduce(x, dst, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    total = x if rank == dst else x.clone()
    if rank != (dst + 1) % n:
        buffer = torch.empty_like(x)
        dist.recv(buffer, (rank - 1) % n)
        merge(op, total, buffer)
    elif n > 1:
        pass
    if rank != dst:
        dist.send(total, (rank + 1) % n)
    elif op == ops.AVG:
        total /= n

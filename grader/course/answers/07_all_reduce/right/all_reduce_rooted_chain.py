# exercise: all_reduce_rooted
# diagnosis: none
# Down the line to the last rank, and back up again.
import torch
import torch.distributed as dist

R = dist.ReduceOp


def all_reduce_rooted(x, op):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    if rank > 0:
        partial = torch.empty_like(x)
        dist.recv(partial, rank - 1)
        if op in (R.SUM, R.AVG):
            x += partial
        elif op == R.PRODUCT:
            x *= partial
        else:
            x.copy_((torch.minimum if op == R.MIN else torch.maximum)(x, partial))
    if rank < last:
        dist.send(x, rank + 1)
        dist.recv(x, rank + 1)
    elif op == R.AVG:
        x /= last + 1
    if rank > 0:
        dist.send(x, rank - 1)

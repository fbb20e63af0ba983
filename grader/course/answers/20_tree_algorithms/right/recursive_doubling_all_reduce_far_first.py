# exercise: recursive_doubling_all_reduce
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


def recursive_doubling_all_reduce(x, op):
    """The farthest partner first, and the division before the exchanges end."""
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 1
    while 2 * power <= n:
        power *= 2
    came = torch.empty_like(x)
    extra = rank >= power
    if extra:
        dist.send(x, rank - power)
    else:
        if rank + power < n:
            dist.recv(came, rank + power)
            combine(op, x, came)
        step = power // 2
        while step >= 1:
            peer = rank + step if rank // step % 2 == 0 else rank - step
            swap = dist.batch_isend_irecv(
                [dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, came, peer)]
            )
            for request in swap:
                request.wait()
            combine(op, x, came)
            step //= 2
        if op == dist.ReduceOp.AVG:
            x.div_(n)
    if extra:
        dist.recv(x, rank - power)
    elif rank + power < n:
        dist.send(x, rank + power)

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
    rank, n = dist.get_rank(), dist.get_world_size()
    power = 2 ** (n.bit_length() - 1)
    rest = n - power
    came = torch.empty_like(x)
    # of the first pairs, the even rank stands aside
    if rank < 2 * rest and rank % 2 == 0:
        dist.send(x, rank + 1)
        dist.recv(x, rank + 1)
        return
    if rank < 2 * rest:
        dist.recv(came, rank - 1)
        combine(op, x, came)
        number = rank // 2
    else:
        number = rank - rest
    mask = 1
    while mask < power:
        other = number ^ mask
        peer = 2 * other + 1 if other < rest else other + rest
        requests = [dist.irecv(came, peer), dist.isend(x, peer)]
        for request in requests:
            request.wait()
        combine(op, x, came)
        mask <<= 1
    if op == dist.ReduceOp.AVG:
        x /= n
    if rank < 2 * rest:
        dist.send(x, rank - 1)

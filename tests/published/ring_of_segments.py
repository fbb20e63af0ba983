"""The schedule of Baidu's ring all-reduce, written anew, with all reductions of chapter 11."""

import torch
import torch.distributed as dist

COMBINE = {
    dist.ReduceOp.SUM: torch.add,
    dist.ReduceOp.AVG: torch.add,
    dist.ReduceOp.PRODUCT: torch.mul,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.MAX: torch.maximum,
}


def ring_all_reduce(x, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % n, (rank + 1) % n
    # the first segments are one element longer where n does not divide the length
    segments = x.view(-1).tensor_split(n)
    for step in range(n - 1):  # scatter-reduce: send segment rank - step, receive the one before
        mine = segments[(rank - step - 1) % n]
        came = torch.empty_like(mine)
        receive = dist.irecv(came, left)
        dist.send(segments[(rank - step) % n], right)
        receive.wait()
        mine.copy_(COMBINE[op](mine, came))
    if op == dist.ReduceOp.AVG:
        segments[(rank + 1) % n].div_(n)
    for step in range(n - 1):  # all-gather: send segment rank + 1 - step, receive the one before
        receive = dist.irecv(segments[(rank - step) % n], left)
        dist.send(segments[(rank + 1 - step) % n], right)
        receive.wait()

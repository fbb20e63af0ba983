# exercise: reduce
# diagnosis: wrong_value
# hint: Zeros take part
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank != dst:
        dist.send(x, dst)
        return
    acc = torch.zeros_like(x)
    buf = torch.empty_like(x)
    for r in range(n):
        if r == dst:
            buf.copy_(x)
        else:
            dist.recv(buf, r)
        if op == dist.ReduceOp.MIN:
            acc = torch.minimum(acc, buf)
        elif op == dist.ReduceOp.MAX:
            acc = torch.maximum(acc, buf)
        elif op == dist.ReduceOp.PRODUCT:
            acc = acc * buf
        else:
            acc = acc + buf
    if op == dist.ReduceOp.AVG:
        acc = acc / n
    x.copy_(acc)

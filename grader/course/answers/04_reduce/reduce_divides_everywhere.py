# exercise: reduce
# diagnosis: wrong_value
# hint: the other ranks divide their x too
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank == dst:
        buf = torch.empty_like(x)
        for r in range(n):
            if r != dst:
                dist.recv(buf, r)
                if op == dist.ReduceOp.MIN:
                    x.copy_(torch.minimum(x, buf))
                elif op == dist.ReduceOp.MAX:
                    x.copy_(torch.maximum(x, buf))
                elif op == dist.ReduceOp.PRODUCT:
                    x.mul_(buf)
                else:
                    x.add_(buf)
    else:
        dist.send(x, dst)
    if op == dist.ReduceOp.AVG:
        x.div_(n)

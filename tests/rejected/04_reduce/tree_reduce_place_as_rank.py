# exercise: tree_reduce
# diagnosis: exception
# hint: a place in the
import torch
import torch.distributed as dist


def tree_reduce(x, dst, op):
    n = dist.get_world_size()
    v = (dist.get_rank() - dst) % n
    total, buffer, step = x.clone(), torch.empty_like(x), 1
    while step < n:
        if v & step:
            dist.send(total, v - step)
            return
        if v + step < n:
            dist.recv(buffer, v + step)
            if op == dist.ReduceOp.MIN:
                total = torch.minimum(total, buffer)
            elif op == dist.ReduceOp.MAX:
                total = torch.maximum(total, buffer)
            elif op == dist.ReduceOp.PRODUCT:
                total = total * buffer
            else:
                total = total + buffer
        step *= 2
    x.copy_(total / n if op == dist.ReduceOp.AVG else total)

# exercise: reduce
# diagnosis: wrong_value
# hint: Whatever op says
import torch
import torch.distributed as dist


def reduce(x, dst, op):
    if dist.get_rank() != dst:
        dist.send(x, dst)
        return
    n = dist.get_world_size()
    buffer = torch.empty_like(x)
    for src in range(n):
        if src != dst:
            dist.recv(buffer, src)
            x += buffer
    if op == dist.ReduceOp.AVG:
        x /= n
